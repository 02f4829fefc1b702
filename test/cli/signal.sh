# SIGTERM and Ctrl-C save and say so with the exit status; the checkpoint can be resumed.
net
stop() { # SIGNAL OPTIONS...
	signal=$1
	shift
	"$MICROPROP" train xor.topo --target ref --until never --epochs 0 --time 100 --report 100 --quiet --run runs/$signal "$@" >stdout 2>stderr &
	for tries in $(seq 500); do
		[ -s runs/$signal/metrics.jsonl ] && break
		sleep 0.02
	done
	kill -s $signal $!
	wait $!
	echo "$signal: exit $?"
	cat stderr
	grep -o '"stopped_by": "[a-z]*"' stdout
}
stop TERM --json
t test xor.topo runs/TERM/last.safetensors make:xor --json | grep -c cases
"$MICROPROP" train xor.topo --resume runs/TERM/last.safetensors --time 0.01 --json | grep -o '"stopped_by": "[a-z]*"'

# A shell starts background jobs with SIGINT ignored; the program asks for it again.
stop INT --save w.safetensors
[ -s w.safetensors ] && echo saved

# A terminal that is closed; under nohup it stays without effect.
stop HUP --save h.safetensors
[ -s h.safetensors ] && echo saved
(
	trap '' HUP
	"$MICROPROP" train xor.topo --target ref --until never --epochs 0 --time 100 --report 100 --quiet --run runs/nohup >stdout 2>stderr &
	for tries in $(seq 500); do
		[ -s runs/nohup/metrics.jsonl ] && break
		sleep 0.02
	done
	kill -s HUP $!
	kill -s TERM $!
	wait $!
	echo "nohup: exit $?"
)

# Under launch.
"$MICROPROP" launch -- train xor.topo --target ref --until never --epochs 0 --time 100 --report 100 --quiet --run runs/launch >stdout 2>stderr &
for tries in $(seq 500); do
	[ -s runs/launch/metrics.jsonl ] && break
	sleep 0.02
done
kill -s HUP $!
wait $!
echo "launch: exit $?"
cat stderr
[ -s runs/launch/last.safetensors ] && echo saved
