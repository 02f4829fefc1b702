# A mapped data file that another program cuts short ends training with a sentence; checkpoints are whole and go on with the whole file.
npy() { # COLUMNS: 100,000 cases, all zero
	printf '\223NUMPY\001\000\166\000'
	printf '%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (100000, $1), }"
	head -c $((100000 * $1)) /dev/zero
}
cat >net.topo <<END
defaults 1989
group in 40 input
group hidden 3
group out 1 output
connect in, true -> hidden
connect hidden, true -> out
END
npy 1 >cases-y.npy
export MICROPROP_MEMORY=4000000              # more than half of that is mapped, not read
for target in cpu ref; do
	npy 40 >cases-x.npy
	"$MICROPROP" train net.topo cases-x.npy --target $target --until never --epochs 0 --time 100 --run runs/$target --every 0.02 >stdout 2>stderr &
	for tries in $(seq 500); do
		[ -s runs/$target/last.safetensors ] && break
		sleep 0.02
	done
	: >cases-x.npy
	wait $!
	echo "$target: exit $?"
	sed "s|$(pwd -P)/||" stderr
	cat stdout
	npy 40 >cases-x.npy
	"$MICROPROP" train net.topo cases-x.npy --resume runs/$target/last.safetensors --time 0.01 --json | grep -o '"stopped_by": "[a-z]*"'
done

# Sent by another process, the signal has its default effect.
"$MICROPROP" train net.topo cases-x.npy --until never --epochs 0 --time 100 --run runs/other >stdout 2>stderr &
for tries in $(seq 500); do
	[ -s runs/other/metrics.jsonl ] && break
	sleep 0.02
done
kill -s BUS $!
wait $! 2>/dev/null
echo "exit $?"
cat stderr
