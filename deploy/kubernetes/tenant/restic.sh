#!/bin/sh
# Copies the backups that Steward makes into a restic repository, every 15 minutes. Variables name the repository, the file
# with its password, the tenant and the folder.
#
# A failure ends nothing, because a container that ends again and again would make the whole pod unready.
set -u

# A shell obeys a signal between two commands, or while it waits for one in the background.
child=
trap 'kill "$child" 2>/dev/null; wait; exit 0' TERM INT
run() {
  "$@" &
  child=$!
  wait "$child"
}

copy_backups() {
  # A folder without a backup, on a new volume, must not become the newest snapshot.
  # restic takes unreadable files for missing ones, so what cannot be read must fail here.
  cat "$STEWARD_BACKUP_DIR"/2*/files.sha256 >/dev/null || return
  run restic cat config >/dev/null || run restic init || return
  # Removes the locks of a restic that was killed, and no others.
  run restic unlock
  # 3: a file was gone, because Steward removed its oldest backup meanwhile. The snapshot has all others.
  run restic backup --host "$STEWARD_TENANT" --exclude "$STEWARD_BACKUP_DIR/.new-*" \
    --exclude "$STEWARD_BACKUP_DIR/.copied" "$STEWARD_BACKUP_DIR" || [ $? -eq 3 ] || return
  # Steward shows when that last worked, so that an alert can miss it.
  touch "$STEWARD_BACKUP_DIR/.copied"
  run restic forget --host "$STEWARD_TENANT" --path "$STEWARD_BACKUP_DIR" \
    --keep-within 24h --keep-hourly 24 --keep-daily 14 --keep-weekly 8 --prune
}

while :; do
  copy_backups || echo "the backups were not copied; the next try is in 15 minutes" >&2
  run sleep 900
done
