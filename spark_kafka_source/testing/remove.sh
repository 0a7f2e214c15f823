# Removes a directory as soon as it is told to, or when the process at the other end of this
# script's standard input has ended; then its brokers are being killed at this very moment.
#   sh remove.sh DIRECTORY
read -r _ || sleep 1
for _ in 1 2 3 4 5 6 7 8 9 10; do
    rm -rf "$1" && exit 0
    sleep 1
done
exit 1
