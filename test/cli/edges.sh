# Corners where a command line did not do what it says.
net
sed -i 's/epochs 5000/epochs 20 until never/' xor.topo
# Test figures are those of this run, not of the one that it continues.
t train xor.topo --target ref --test make:xor --epochs 2 --save a.safetensors --quiet | grep -cE 'test'
t train xor.topo --target ref --resume a.safetensors --epochs 4 --quiet --json | grep -c '"test_error"'
# Weights are measured by the error that they were trained with, whatever the file says.
sed 's/group out 1 output/group out 1 linear output/; s/train/train error cross-entropy/' xor.topo >cross.topo
t train cross.topo --target ref --epochs 2 --quiet
t train cross.topo --target ref --error squared --epochs 2 --quiet --save b.safetensors >log
t test cross.topo b.safetensors | grep -E '^(error|total)'
t predict b.safetensors make:xor | wc -l
t train cross.topo --load b.safetensors --epochs 1 --quiet
# An option that is given twice.
t train xor.topo --test make:xor --test make:parity:2
t train xor.topo --json --json
t gf11 switch ring --dead port:3 --dead port:4 --machine gf11 --machine gf11
# A file is not converted to itself; two parts are two files.
printf '0 1 : 1\n1 1 : 0\n' >cases.txt
cp cases.txt copy.txt
ln -s cases.txt link.txt
t data cases.txt cases.txt
t data link.txt ./cases.txt
t data cases.txt part.txt part.txt --split 0.5
cmp cases.txt copy.txt && echo "not changed"
# Operands in the wrong order.
t test xor.topo xor.topo
t test b.safetensors cross.topo
t test "$SOURCE_DIR/test/data/v0.1/checkpoint.safetensors" xor.topo
t predict b.safetensors xor.topo cases.txt
# Reports that were asked for, off a terminal; on one, no escapes where the cursor cannot move, and what is left first.
t train xor.topo --target ref --epochs 4 --report 2 | grep '^stopped'
script -qec "env TERM=dumb '$MICROPROP' train xor.topo --epochs 100 --report 50" /dev/null </dev/null >dumb
grep -c 'epoch' dumb
grep -c "$(printf '\033')" dumb
script -qec "env TERM=xterm '$MICROPROP' train xor.topo --epochs 100 --report 50" /dev/null </dev/null >tty
tr '\r' '\n' <tty | grep -c '^.\[36m[0-9.]* m*s left  epoch'
# The seconds of a sweep are those of each clock.
t gf11 sweep clock=10,50 --procs 8 --cases 1000 --json | sed -E 's/.*"simulated_cycles": ([0-9]+).*"simulated_seconds": ([0-9.e-]+).*/\1 \2/' |
	awk '/^[0-9]/ { printf "%.3f\n", $2 / ($1 * 30e-9) }'
# All of a few routes are shown.
printf '0 1\n1 0\n100 30\n' >routes
t gf11 switch routes | grep -E '^[A-H] |not drawn'
# The first command of the help works anywhere; help and completion know the commands of gf11.
t help | tail -n 1
t train example:xor --quiet | grep -E 'example:xor|solved'
t train example:xr
t gf11 switch --help | grep -E '^  --'
bash -c 'eval "$("$MICROPROP" --completion bash)"
	COMP_WORDS=(microprop gf11 sw); COMP_CWORD=2; _microprop; echo "${COMPREPLY[@]}"
	COMP_WORDS=(microprop train --rule ad); COMP_CWORD=3; _microprop; echo "${COMPREPLY[@]}"'
"$MICROPROP" --completion zsh | sed -n '1p;$p'
"$MICROPROP" --completion fish | grep -c 'seen_subcommand_from gf11.* switch'
"$MICROPROP" --completion fish | grep -- '-l rule '
