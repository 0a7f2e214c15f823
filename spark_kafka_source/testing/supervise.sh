# Runs a command that cannot outlive whoever holds the other end of this script's standard input:
# at its end, also when the holder was killed, the command is killed too.
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
