/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */
/*
 * The lock of a folder of names, for removing those that killed processes left. A process that is
 * stopped with it keeps the others for a second: then they remove its file and lock another one. So
 * its owner may lose it, and what is done under it is done so that no name is lost by that.
 */
#ifndef SV_FOLDER_LOCK_H
#define SV_FOLDER_LOCK_H

int sv_folder_lock(int folder); /* -1 with errno when there can be no such file */
void sv_folder_unlock(int folder, int lock);
void sv_folder_lock_clean(int folder); /* removes the file that a killed process left */

#endif
