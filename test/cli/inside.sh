# A command for `ndl run`: notices whether another one is at work, and counts. $1: a folder; $2: how long to stay, in seconds; $3: `stubborn` ignores SIGTERM.
[ "$3" = stubborn ] && trap '' TERM
echo $$ >>"$1/pids"
before=$(cat "$1/inside" 2>/dev/null)
# A zombie is dead, though its parent has not asked how.
case $(ps -o stat= -p "${before:-none}" 2>/dev/null) in '' | Z*) ;; *) echo "$before and $$" >>"$1/overlaps" ;; esac
echo $$ >"$1/inside"
count=$(cat "$1/count" 2>/dev/null)
sleep "$2"
echo $((count + 1)) >"$1/count"
: >"$1/inside"
