# Small limits of the process: what it needs it says.
net
# A stack of 256 KiB is enough for every target; a lower limit is raised if that is allowed.
for limit in "-S -s 96" "-s 256"; do
	for options in "" "--target ref" "--target gf11 --procs 4" "--restarts 20 --threads 2" "--guard full" "--precision bf16"; do
		(
			ulimit $limit
			"$MICROPROP" train xor.topo --epochs 50 $options >stdout 2>&1
			echo "stack $limit, $options: exit $?"
		)
	done
	(
		ulimit $limit
		"$MICROPROP" train "$SOURCE_DIR/examples/letters.topo" --epochs 1 --threads 2 --json | grep -o '"epochs": 1\|"fingerprint".*,'
		"$MICROPROP" show xor.topo >/dev/null
		echo "exit $?"
	)
done

(
	ulimit -s 96
	t train xor.topo
)

# Files: the remedy is for what is wrong.
(
	exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-
	ulimit -n 5
	"$MICROPROP" train xor.topo --run many
	echo "exit $?"
	"$MICROPROP" launch -- train xor.topo --run many
	echo "exit $?"
) 2>&1 | sed 's/heartbeat-[^ :]*/heartbeat-NAME/; s/ (.*)$//'
