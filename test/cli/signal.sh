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

# Tables: in cross-validation, while seeds are tried, in a search. What is done is saved.
awk 'BEGIN { print "a,b,kind"; for (i = 0; i < 90; i++) { a = (i * 7) % 19 - 9; b = (i * 11) % 17 - 8; print a "," b "," (a * b > 0 ? "same" : a * b < 0 ? "other" : "none") } }' >sign.csv
seen() { # COMMAND...: until it holds, at most 20 seconds
	for tries in $(seq 1000); do
		"$@" && break
		sleep 0.02
	done
}
"$MICROPROP" train sign.csv --folds 80 --epochs 1000000 --patience 1000000 >stdout 2>stderr &
seen grep -q network: stderr
sleep 0.1
kill -s INT $!
wait $!
echo "folds: exit $?"
cat stderr
# The best of the seeds that have ended is trained to its end.
"$MICROPROP" train xor.topo --target cpu --until error:0.1 --epochs 5000 --restarts 3000000 --json >stdout 2>stderr &
sleep 1
kill -s INT $!
wait $!
echo "seeds: exit $?"
cat stderr
grep -o '"solved": [a-z]*, "stopped_by": "[a-z]*"' stdout
"$MICROPROP" train sign.csv --restarts 1000000 --epochs 1 --json >stdout 2>stderr &
sleep 1
kill -s TERM $!
wait $!
echo "restarts: exit $?"
cat stderr
grep -c '"restarts": 1000000, "restarts_done": [1-9]' stdout
grep -c '"folds"' stdout
t test sign.safetensors sign.csv --json | grep -c accuracy

# The log of a search has each trial as soon as it is done; a line that is not whole does not count.
"$MICROPROP" tune sign.csv --trials 100000 --folds 3 --log log --save tuned.safetensors >stdout 2>stderr &
logged() { [ $(grep -c ' ' log) -gt 6 ]; }
seen logged 2>/dev/null
kill -s INT $!
wait $!
echo "tune: exit $?"
sed 's/[0-9,]* trials, best.*/N trials, best/; s/after .* networks/after N networks/' stderr
grep -c "saved to tuned.safetensors" stdout
t test tuned.safetensors sign.csv --json | grep -c accuracy
t tune sign.csv --trials 9 --folds 3 --quiet --no-save --log short --json | sed 's/.*"best": \[\([^}]*}\).*/\1/' >whole
head -n 5 short >part
sed -n 6p short | head -c 12 >>part
t tune sign.csv --trials 9 --folds 3 --quiet --no-save --log part --json | sed 's/.*"best": \[\([^}]*}\).*/\1/' >again
sed 1d whole >a; sed 1d again | cmp - a && echo "the same when begun again"
t tune sign.csv --trials 9 --folds 3 --quiet --no-save --log part --json | grep -o '"networks": [0-9]*'
