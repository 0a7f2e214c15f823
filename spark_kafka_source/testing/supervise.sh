# Runs a command that cannot outlive the process at the other end of this script's standard input:
# when that process ends, even if it was killed, the command is killed, too.
#   sh supervise.sh OUTPUT ERRORS COMMAND...    prints the command's process id, exits as it exits
output=$1 errors=$2
shift 2
exec 3<&0
"$@" >>"$output" 2>>"$errors" 3<&- &
child=$!
echo "$child"
exec >/dev/null
{
    read -r _ <&3
    kill -KILL "$child"
} &
watcher=$!
wait "$child"
status=$?
kill "$watcher"
exit "$status"
