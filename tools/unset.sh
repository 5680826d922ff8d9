# SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only
# Sourced by the scripts that build and test: unsets the settings of uDAPL and of the software device that the caller's
# shell has exported, since each test sets what it needs.
for name in $(env | sed -n 's/^\(\(DAT\|DAPL\|SOFTVERBS\)_[A-Z0-9_]*\)=.*/\1/p'); do
	unset "$name"
done
unset name
