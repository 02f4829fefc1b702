# A run directory holds everything; a resumed run goes on where its checkpoint stands.
net
t train xor.topo --target ref --until never --epochs 6 --report 2 --run runs/a --json
ls runs/a
cat runs/a/args.json
cat runs/a/metrics.jsonl
t test xor.topo runs/a/best.safetensors make:xor --json
echo '{"epoch": 7, "upda' >>runs/a/metrics.jsonl
t train xor.topo --resume runs/a/last.safetensors --epochs 10 --run runs/a --json
cat runs/a/metrics.jsonl
t train xor.topo --target ref --until never --epochs 10 --report 2 --json

# A folder that holds a run is not written over, and a run that is refused leaves no trace.
t train xor.topo --target ref --run runs/a
cp -r runs/a before
t train xor.topo make:parity:4 --resume runs/a/last.safetensors --run runs/a
diff -r before runs/a && echo untouched
t train xor.topo make:parity:4 --run runs/b/c
ls runs
: >file
t train xor.topo --run file/b

# Killed before its first checkpoint: it begins again.  Two runs do not write to one folder.
mkdir runs/killed
echo '{"epoch": 9}' >runs/killed/metrics.jsonl
: >runs/killed/args.json
t train xor.topo --target ref --until never --epochs 2 --report 2 --run runs/killed --json
cat runs/killed/metrics.jsonl
mkdir runs/other
exec 9>runs/other/metrics.jsonl
flock 9
t train xor.topo --target ref --until never --epochs 2 --run runs/other --quiet 9>&-
ls runs/other
exec 9>&-
t train xor.topo --target ref --until never --epochs 2 --run runs/other --quiet --json

# What is written to the folder stays in it: links are refused, and files are replaced as a whole or not at all.
echo precious >precious
for name in args.json metrics.jsonl last.safetensors best.safetensors epoch-000002.safetensors outputs-000002.npy; do
	mkdir -p runs/link
	ln -s ../../precious runs/link/$name
	t train xor.topo --target ref --until never --epochs 2 --run runs/link --quiet --checkpoints-every 2 --outputs-every 2
	rm -r runs/link
done
mkdir -p runs/link/best.safetensors
mkfifo runs/link/metrics.jsonl
t train xor.topo --target ref --until never --epochs 2 --run runs/link --quiet
cat precious
# others read the old args.json to its end, as a new file takes its place
t train xor.topo --target ref --until never --epochs 2 --run runs/whole --quiet --json
exec 9<runs/whole/args.json
t train xor.topo --target ref --until never --epochs 4 --resume runs/whole/last.safetensors --run runs/whole --quiet --json
cat <&9 | tail -1
exec 9<&-
[ "$(cat runs/whole/metrics.jsonl | wc -l)" = 2 ] && echo "2 whole lines"
# permissions by umask; a setuid bit does not stay
(umask 027 && "$MICROPROP" train xor.topo --target ref --until never --epochs 2 --run runs/mask --quiet >mask.out 2>&1)
stat -c '%a %n' runs/mask/*
chmod 6755 runs/mask/last.safetensors
"$MICROPROP" train xor.topo --target ref --until never --epochs 2 --save runs/mask/last.safetensors --quiet >mask.out 2>&1
stat -c '%a %n' runs/mask/last.safetensors
# a limit of file size is like a full disk: no line is cut short
(ulimit -f 16; exec "$MICROPROP" train xor.topo --target ref --until never --epochs 400 --report 1 --run runs/full --quiet) >/dev/null 2>&1
echo "exit $?"
[ $(wc -l <runs/full/metrics.jsonl) -gt 5 ] && echo lines
grep -vc '^{"epoch": [0-9]*, .*}$' runs/full/metrics.jsonl
# norms: with plain gradient descent a change of the weights is the rate times the gradient, summed over the 4 cases
t train xor.topo --norms --quiet
"$MICROPROP" train xor.topo --rule momentum --momentum 0 --rate 0.5 --until never --epochs 2 --run runs/norms --norms --quiet >/dev/null
tr -d '{},' <runs/norms/metrics.jsonl | awk '{ for (i = 1; i < NF; i++) if ($i ~ /_norm/) n[NR $i] = $(i + 1) }
	END { d = n["2\"step_norm\":"] - 0.5 * 4 * n["1\"gradient_norm\":"]; print (n["2\"weight_norm\":"] > 0), (n["1\"gradient_norm\":"] > 0), (d * d < 1e-12) }'
# a curve also of a run that is over before a tenth of a second has passed
"$MICROPROP" train xor.topo --until never --epochs 200 --run runs/short --quiet >/dev/null
sed 's/.*"epoch": \([0-9]*\),.*/\1/' runs/short/metrics.jsonl | awk '$1 <= 32 { n++ } END { print n, $1, (NR >= 70) }'
