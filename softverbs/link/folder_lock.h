/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/* The lock of a folder of names, held while names of killed processes are removed. If its owner is stopped,
 * other processes wait for one second, then remove the lock file and lock a new one. So an owner may lose the
 * lock; work under it must be safe against that: no name may be lost. */
#ifndef SV_LINK_FOLDER_LOCK_H
#define SV_LINK_FOLDER_LOCK_H

int sv_folder_lock(int folder); /* -1 with errno if the file cannot be made */
void sv_folder_unlock(int folder, int lock);
void sv_folder_lock_clean(int folder); /* removes the file that a killed process left */

#endif
