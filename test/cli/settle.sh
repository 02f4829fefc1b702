# Settling networks: what is shown, trained, tested and predicted; the same bits on any threads and vectors and after an
# interruption; what is refused.
triangle=$SOURCE_DIR/examples/triangle.topo
print() { grep -o '"fingerprint": "[^"]*"\|"error": [^,]*\|"within": [^,]*'; }
t show "$triangle"
t show "$triangle" --stage plan
t show "$triangle" --stage program --target ref
t train "$triangle" --save words.safetensors --json | print
t test "$triangle" words.safetensors --json | print
t test "$triangle" words.safetensors --ticks 12 --json | print
t predict "$triangle" words.safetensors make:triangle | sed 1d | cut -c 1-40 | head -2
for target in cpu ref; do
	t train "$triangle" --target $target --epochs 3 --batch all --json | print | grep -v fingerprint
done

# The same bits.
cat >settle.topo <<'END'
defaults 1989
group in 203 input
group hidden 20 integrate input
group out 26 output start 0.5
group clean 9 tanh integrate output dt 0.5
connect in, true -> hidden
connect hidden, clean, true -> out
connect out -> clean, hidden
train ticks 3 intervals 2 targets-from 4 bptt 4 batch 1100 rate 0.0005 updates 4
data "make:letters"
END
for threads in 1 2 3 8; do
	"$MICROPROP" train settle.topo --threads $threads --json | print | grep fingerprint
done | uniq -c | sed 's/^ *//'
"$MICROPROP" train settle.topo --updates 2 --save half.safetensors >/dev/null
t train settle.topo --resume half.safetensors --updates 4 --json | print | grep fingerprint
MICROPROP_ISA=generic "$MICROPROP" train settle.topo --json | print | grep fingerprint

# On the GF11, by relocation: the words of a case once for each tick.
t train "$triangle" --target gf11 --procs 8 --epochs 1 --json | print
t train "$triangle" --target gf11 --procs 8 --compiler best --epochs 1 --json | print

# Refused.
t train "$triangle" --target gf11 --ticks 60
t train "$triangle" --target gf11 --disks on
t train "$triangle" --settle synchronous
t train "$triangle" --targets-from 9
t train "$triangle" --bptt 0
t train settle.topo --precision bf16 --inputs-until 2
t train "$SOURCE_DIR/examples/xor.topo" --ticks 4

# Ticks of each case, in the data.
cat >events.txt <<'END'
"short" 1 0 : 1 ticks 2
"long" 0 1 : 0 weight 2 ticks 7
"plain" 1 1 : 1
END
cat >events.topo <<'END'
defaults 1989
group in 2 input
group out 1 output
connect in, out, true -> out
train ticks 4 targets-from 3 epochs 2
END
t data events.txt events.npz
t data events.npz again.txt
cat again.txt
for target in ref cpu; do
	t train events.topo events.npz --target $target --json | print | grep error
done
t train "$SOURCE_DIR/examples/xor.topo" events.txt --epochs 1 2>&1 | grep -A1 ticks
echo '1 0 : 1 ticks 0.5' >bad.txt
t data bad.txt
t data events.txt events.csv | grep -A1 note
