# Files without end, without content, of terabytes, or with words of megabytes: a sentence at once, in little memory.
small() { ( ulimit -v 600000; timeout 20 "$MICROPROP" "$@" 2>&1; echo "exit $?" ) | cut -c1-120 | grep -v '^  [^a-z]'; }
net
truncate -s 1T sparse.csv sparse.txt sparse.none || exit 1
printf 'a,b\n1,2\n' >tail.csv
truncate -s 1T tail.csv
for file in sparse.csv sparse.txt sparse.none tail.csv; do
	timeout 20 "$MICROPROP" data $file 2>&1 | grep error
done
for format in $("$MICROPROP" data --help | sed -n 's/^ *--format //p' | tr '|' ' '); do
	timeout 20 "$MICROPROP" data sparse.none --format $format 2>&1 | grep error || echo "$format: no answer"
done
timeout 20 "$MICROPROP" show sparse.txt 2>&1 | grep error
small data /dev/zero
small show /dev/zero
cat /dev/zero | small data -
cat /dev/zero | small data - --format csv
small data /dev/null
small data .
small data - <.
export MICROPROP_MEMORY=40000000
yes 1,2 | small data - --format csv
yes 1,2 | head -c 6000000 | small data - --format csv
yes group | small show /dev/stdin
(printf 'PK\003\004'; cat /dev/zero) | small data -
unset MICROPROP_MEMORY

# more columns, or numbers in a line, than a network can have units; words of a megabyte
head -c 17000000 /dev/zero | tr '\0' , >commas.csv
small data commas.csv
yes 1 | head -c 34000000 | tr '\n' ' ' >ones.txt
small data ones.txt
word=$(head -c 100000 /dev/zero | tr '\0' w)
for line in "train rate $word" "train $word 1" "include \"$word\"" "group $word"; do
	echo "$line" >word.topo
	"$MICROPROP" show word.topo >word.out 2>&1
	[ $(wc -c <word.out) -lt 1000 ] || echo "a word of 100,000 bytes gives $(wc -c <word.out) bytes"
done
sed -n 1p word.out | cut -c1-60
printf 'a,k\n1,%s\n2,b\n' "$word" >word.csv
"$MICROPROP" data word.csv | tail -2 | sed 's/ww*/www/'

# a FIFO without a writer: a note, and then it goes on
printf 'a,b\n1,2\n3,4\n' >cases.csv
mkfifo pipe
"$MICROPROP" data pipe --format csv >fifo.out 2>fifo.err &
until [ -s fifo.err ]; do sleep 0.05; done
cat cases.csv >pipe
wait $!
cat fifo.err
head -3 fifo.out
gzip -c cases.csv >cases.csv.gz
zcat cases.csv.gz >pipe &
t data pipe --format csv | sed -n 4p
zcat cases.csv.gz | t data - --format csv | sed -n 4p

printf 'a,b,k\n0,0,1\n0,1,0\n' >foreign.csv
"$MICROPROP" train xor.topo --epochs 2 --until never --save foreign.safetensors --quiet >out 2>&1
cat foreign.csv >pipe &
t predict xor.topo foreign.safetensors pipe --format csv      # read twice: the pipe cannot be

# files of no size, compressed data larger than memory, JSON of many levels
t data /proc/self/status --format csv 2>&1 | sed -n 2p
(printf '\000\000\010\002\000\000\020\000\000\000\020\000'; head -c 16777216 /dev/zero) | gzip -c >bomb.idx.gz
MICROPROP_MEMORY=20000000 t data bomb.idx.gz
(printf '\240\206\001\000\000\000\000\000'; head -c 100000 /dev/zero | tr '\0' '[') >deep.safetensors
t test xor.topo deep.safetensors 2>&1 | cut -c1-120
(printf '\240\206\001\000\000\000\000\000{"a":'; head -c 99995 /dev/zero | tr '\0' '[') >deep.safetensors
t test xor.topo deep.safetensors 2>&1 | cut -c1-120

# a full disk
for line in 'data --make xor /dev/full' 'train xor.topo --save /dev/full' 'show xor.topo' 'train xor.topo --json'; do
	"$MICROPROP" $line >/dev/full 2>err
	echo "$line: exit $?: $(head -1 err)"
done
"$MICROPROP" train xor.topo --save xor.safetensors --quiet >out 2>&1
t predict xor.topo xor.safetensors make:xor --output /dev/full

# commands and cases that come line by line: a line without an end, or with bytes that are not text
endless() { timeout 20 "$MICROPROP" "$@" 2>&1 | cut -c1-60 | grep -E 'error|^  [a-v]|^note'; }
for fill in '\0' w; do
	cat /dev/zero | tr '\0' "$fill" | endless gf11 debug forward --procs 2
	(echo 0 1; sleep 0.2; cat /dev/zero | tr '\0' "$fill") | endless predict xor.safetensors -
done
for line in '\0' '# \033' ' \0 ' '1 \0 1'; do
	printf "0 1\n$line\n1 1\n" | endless predict xor.safetensors -
	printf "step\n$line\nstep\n" | endless gf11 debug forward --procs 2
done
cat /dev/zero | MICROPROP_MEMORY=40000000 endless predict xor.safetensors -

# metrics of a run behind a hole; logs of a search that are none
"$MICROPROP" train xor.topo --until never --epochs 3 --run holes --quiet >out 2>&1
truncate -s 1T holes/metrics.jsonl
small train xor.topo --until never --epochs 5 --run holes --resume holes/last.safetensors --quiet | grep -E 'exit|fingerprint'
tail -n 1 holes/metrics.jsonl | grep -o '^{"epoch": 5,'
awk 'BEGIN { print "a,b"; for (i = 0; i < 30; i++) print i * 7 % 19 "," i % 3 }' >rows.csv
truncate -s 1T log
for log in log pipe /dev/zero; do
	timeout 20 "$MICROPROP" tune rows.csv --trials 2 --no-save --log $log 2>&1 | grep error || echo "no answer to --log $log"
done
for operand in pipe /dev/zero; do t view $operand; done
