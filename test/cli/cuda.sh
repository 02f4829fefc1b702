# Target cuda, emulated: the fingerprints of target cpu; a run may change between both.
cp $SOURCE_DIR/examples/encoder-8-3-8.topo $SOURCE_DIR/examples/spirals.topo $SOURCE_DIR/examples/letters.topo $SOURCE_DIR/examples/reber.topo $SOURCE_DIR/examples/triangle.topo .
export MICROPROP_CUDA=emulate:8 # an odd number also looks for races, which takes longer
print() { grep -oE '"(updates|error|right|within|fingerprint)": [^,}]*' | tr '\n' ' '; echo; }
for args in "encoder-8-3-8.topo --epochs 30 --rule adam" "letters.topo --updates 3 --batch 1100" "letters.topo --updates 9 --batch 64 --rule doug --input dense" \
	"reber.topo --epochs 2 --bptt full --error squared" "triangle.topo --epochs 2 --bptt 3 --inputs-until 2"; do
	$MICROPROP train $args --json | print
	$MICROPROP train $args --json --target cuda | print
done
# Several threads make the order of examples, which is the same.
for target in "cpu" "cuda --threads 3"; do
	$MICROPROP train encoder-8-3-8.topo --epochs 400 --batch 3 --until never --target $target --json | print
done
# Larger than the memory: cases pass through two slots, of so many.
for args in "letters.topo --updates 9 --batch 64 --rule doug --input dense" "letters.topo --updates 1 --batch 1100"; do
	MICROPROP_CUDA_SLOT=600 $MICROPROP train $args --json --target cuda | print
done
MICROPROP_CUDA_MEMORY=3000000 $MICROPROP train letters.topo --updates 1 --batch 8 --json --target cuda | print
$MICROPROP train letters.topo --updates 1 --batch 8 --json | print
# So little that sums of the leaves of a batch are joined in waves.
for target in cpu cuda; do MICROPROP_CUDA_MEMORY=6000000 $MICROPROP train letters.topo --batch all --updates 1 --target $target --json | print; done
MICROPROP_CUDA_MEMORY=20000 $MICROPROP train letters.topo --updates 1 --target cuda
# Blocks of a GPU's size: several warps score rows, one forms tallies; a team without a leaf; wide layers of many seeds.
printf 'group in 64 input\ngroup h 6\ngroup out 64 output\nconnect in, true -> h\nconnect h, true -> out\n' >wide.topo
printf 'group in 2 input\ngroup h 200\ngroup out 1 output\nconnect in, true -> h\nconnect h, true -> out\n' >flat.topo
awk 'BEGIN { print "a,b,c"; for (i = 0; i < 900; i++) print i % 7 / 7 "," i % 11 / 11 "," (i % 3 == 0) }' >n.csv
compare() { # SEED BLOCKS THREADS ARGUMENTS...
	local seed=$1 blocks=$2 threads=$3
	shift 3
	$MICROPROP train "$@" --json | print
	MICROPROP_CUDA=emulate:$seed MICROPROP_CUDA_BLOCKS=$blocks MICROPROP_CUDA_THREADS=$threads $MICROPROP train "$@" --target cuda --json | print
}
compare 9 1 512 wide.topo make:encoder:64-6 --epochs 2 --batch all --guard light
compare 2 2 128 flat.topo n.csv --updates 4 --batch 600 --no-shuffle
# A team of five blocks, one of which has no columns of a gradient.
compare 9 10 512 letters.topo --updates 2 --batch 1000
# Dense inputs of several leaves: runs of tiles, of which the device copies pieces of rows; teams of five and of three
# blocks, the same leaves in every update and others. Without such copies, warps stage the pieces.
compare 9 10 512 letters.topo --updates 2 --batch 1000 --input dense
MICROPROP_CUDA_SHARED=232000 compare 9 12 512 letters.topo --updates 1 --batch 601 --input dense
MICROPROP_CUDA_SHARED=150000 compare 9 6 256 letters.topo --updates 2 --batch 1000 --input dense
# The same with a gradient that is formed beside the backward pass.
MICROPROP_CUDA_SHARED=232000 compare 8 16 512 letters.topo --updates 1 --batch 1000 --input dense
# All updates are alike: weights of the next one are on their way when the job ends, by its number of updates or before.
$MICROPROP data make:letters two.npz rest.npz --split 0.0834 >/dev/null
MICROPROP_CUDA_SHARED=232000 compare 9 10 512 letters.topo two.npz --updates 3 --batch all --input dense --error squared --until never
MICROPROP_CUDA_SHARED=232000 compare 12 10 512 letters.topo two.npz --updates 3 --batch all --input dense --error squared --until error:2.5
MICROPROP_CUDA_SHARED=232000 compare 12 10 512 letters.topo two.npz --updates 2 --batch all --error squared
# As many leaves in every update, of other rows.
$MICROPROP data make:letters more.npz rest.npz --split 0.0915 >/dev/null
MICROPROP_CUDA_SHARED=232000 compare 5 8 512 letters.topo more.npz --updates 3 --batch 560 --input dense --no-shuffle
# Errors of cases that differ by more than 2^20: their sum depends on the order.
printf 'group in 2 input\ngroup h 6\ngroup out 6 output\nconnect in, true -> h\nconnect h, true -> out\n' >six.topo
awk 'BEGIN { print "a,b,c,d,e,f,g,h"; for (i = 0; i < 900; i++) print i % 7 / 7 "," i % 11 / 11 "," (i % 3 ? 1234.567 * i : 0.5) ",0.5,0.5,0.5,0.5,0.5" }' >far.csv
compare 9 4 256 six.topo far.csv --targets c,d,e,f,g,h --updates 2 --batch 900 --no-shuffle --rate 1e-12 --error squared
for target in cpu cuda; do
	MICROPROP_CUDA_THREADS=512 $MICROPROP train flat.topo make:xor --batch 2 --no-shuffle --epochs 3 --restarts 2 --target $target --json | grep -o '"results.*'
done
# An output whose one link is from the true unit.
printf 'group in 2 input\ngroup h 2\ngroup out 2 output\nconnect in -> h\nconnect h -> out[0]\nconnect true -> out\n' >alone.topo
awk '{ print $0 "," (NR == 1 ? "d" : NR % 2) }' n.csv >two.csv
compare 2 2 128 alone.topo two.csv --targets c,d --updates 4 --batch 600
# Orders of more examples than a block of them has.
awk 'BEGIN { print "a,b,c"; for (i = 0; i < 4300; i++) print i % 7 / 7 "," i % 11 / 11 "," (i % 3 == 0) }' >long.csv
sed 's/h 200/h 2/' flat.topo >thin.topo
for target in cpu cuda; do
	$MICROPROP train thin.topo long.csv --batch 512 --epochs 2 --restarts 2 --until never --target $target --json | grep -o '"results.*'
done
# More gradients than warps: not all are added where rows are; blocks of two warps.
for threads in 128 64; do
	[ $threads = 64 ] && args="encoder-8-3-8.topo --batch 4" || args="spirals.topo --batch 32"
	for target in cpu cuda; do
		MICROPROP_CUDA_THREADS=$threads $MICROPROP train $args --no-shuffle --until never --epochs 1 --restarts 2 --target $target --json | grep -o '"results.*'
	done
done
# Outputs that are 0 and 1, so that sums of many code words are equal.
$MICROPROP data make:letters most.npz few.npz --split 0.98
compare 9 4 128 letters.topo few.npz --batch 60 --no-shuffle --epochs 4 --until never --error squared --rate 1
for target in cpu cuda; do
	$MICROPROP train letters.topo few.npz --batch 240 --no-shuffle --epochs 4 --until never --error squared --rate 1 --restarts 2 --target $target --json | grep -o '"results.*'
done
# Seeds whose rows come in chunks: index lists of one are added beside the products of another.
for shuffle in --no-shuffle --shuffle; do
	for target in cpu cuda; do
		MICROPROP_CUDA=emulate:9 MICROPROP_CUDA_THREADS=512 MICROPROP_CUDA_SHARED=150000 $MICROPROP train letters.topo few.npz --batch 200 $shuffle --epochs 2 --until never --restarts 2 --target $target --json | grep -o '"results.*'
	done
done
# The same where weights stay in shared memory, with a last batch of few rows.
$MICROPROP data make:letters most.npz some.npz --split 0.957
for target in cpu cuda; do
	MICROPROP_CUDA=emulate:9 MICROPROP_CUDA_THREADS=512 MICROPROP_CUDA_SHARED=232000 $MICROPROP train letters.topo some.npz --batch 512 --no-shuffle --error squared --epochs 2 --until never --restarts 2 --target $target --json | grep -o '"results.*'
done
# Noise, settings of groups and blocks, shared weights.
cat >shaped.topo <<-end
	group in 8 input
	group code 5 elliott gain 1.5 decay 0.001
	group more 5 stepwise
	group out 8 output error cross-entropy error-scale 2 criterion 0.2 zero-error-radius 0.1
	connect in, true -> code limits -2 2
	connect in -> more tied in -> code
	connect code, more, true -> out
	noise in gaussian 0.05
	noise code net uniform 0.2
	noise code -> out gaussian 0.02
	dropout code 0.2
end
for target in cpu cuda; do $MICROPROP train shaped.topo make:encoder:8-3 --epochs 5 --batch 3 --target $target --json | print; done
$MICROPROP train encoder-8-3-8.topo --epochs 10 --target cuda --save half.safetensors --json | print
$MICROPROP train encoder-8-3-8.topo --resume half.safetensors --epochs 20 --target cpu --save rest.safetensors --json | print
$MICROPROP train encoder-8-3-8.topo --resume rest.safetensors --epochs 30 --target cuda --json | print
$MICROPROP train encoder-8-3-8.topo --epochs 30 --json | print
$MICROPROP test encoder-8-3-8.topo rest.safetensors --target cuda | head -3
# At any update, also inside an epoch; with noise.
for args in "encoder-8-3-8.topo --batch 3 --rule adam" "shaped.topo make:encoder:8-3 --batch 2"; do
	$MICROPROP train $args --updates 20 --json | print
	for at in 4 11; do
		$MICROPROP train $args --updates $at --target cuda --save a.safetensors --json >/dev/null
		$MICROPROP train $args --updates 13 --resume a.safetensors --target cpu --save b.safetensors --json >/dev/null
		$MICROPROP train $args --updates 20 --resume b.safetensors --target cuda --json | print
	done
done
$MICROPROP train encoder-8-3-8.topo --resume rest.safetensors --epochs 30 --target ref

# bf16: the same bits whatever shape blocks have; resumed, tested; many seeds; what tensor cores do not cover is refused.
for seed in 8 9; do
	MICROPROP_CUDA=emulate:$seed $MICROPROP train letters.topo --updates 3 --batch 100 --precision bf16 --target cuda --json | print
done
$MICROPROP train letters.topo --updates 2 --batch 600 --precision bf16 --target cuda --json --save half.safetensors | print
$MICROPROP train letters.topo --updates 3 --batch 600 --precision bf16 --target cuda --json --resume half.safetensors | print
$MICROPROP train letters.topo --updates 3 --batch 600 --precision bf16 --target cuda --json | print
$MICROPROP train letters.topo --updates 3 --batch 600 --precision bf16 --target cpu --resume half.safetensors
$MICROPROP test letters.topo half.safetensors --target cuda | head -3
for seed in 1 2; do
	$MICROPROP train encoder-8-3-8.topo --batch 3 --epochs 4 --seed $seed --precision bf16 --target cuda --json | grep -o '"fingerprint.*'
done
MICROPROP_CUDA_THREADS=512 $MICROPROP train encoder-8-3-8.topo --batch 3 --epochs 4 --restarts 2 --precision bf16 --target cuda --json | grep -o '"results.*'
# Seeds by products of warpgroups have the bits of others: inputs that fill blocks of 64, or do not, or some are past the last; any number of hidden units up
# to 63 and of outputs up to 32; one chunk of rows and several; shuffled; any rule, error and end. The first job fails where only the kernel is asked for.
groups_train() {
	with=$1
	shift
	env MICROPROP_CUDA=emulate:9 MICROPROP_CUDA_THREADS=512 MICROPROP_CUDA_SHARED=232448 $with $MICROPROP train "$@" --restarts 2 --precision bf16 --target cuda --json
}
groups() {
	for groups in 0 1; do
		groups_train MICROPROP_CUDA_GROUPS=$groups "$@" | grep -o '"results.*' >groups$groups.json
	done
	cmp groups0.json groups1.json && cat groups1.json
	groups_train "MICROPROP_CUDA_DUMP=groups.ptx MICROPROP_CUDA_FAULT=job:1" "$@" >/dev/null 2>&1
	grep -q wgmma.mma_async groups.ptx || echo "no warpgroups"
}
groups letters.topo some.npz --batch 512 --no-shuffle --error squared --epochs 2 --until never
groups letters.topo few.npz --batch 200 --epochs 2 --rule adam --until right:0.01
for sizes in "50 58 4 150" "127 62 32 150" "130 60 18 150" "203 21 3 293" "130 47 7 220" "50 1 1 140" "63 63 31 100"; do
	set -- $sizes
	awk -v inputs=$1 -v outputs=$3 'BEGIN {
		for (c = 0; c < inputs + outputs; c++) printf "%sc%d", c ? "," : "", c
		for (i = 0; i < 330; i++) for (c = 0; c < inputs + outputs; c++) { x = (x * 69069 + 12345) % 4294967296; printf "%s%d", c ? "," : "\n", c < inputs ? int(x / 65536) % 3 == 0 : i % 5 * (c + 1) % 3 == 0 }
	}' >groups.csv
	printf 'group in %s input\ngroup h %s\ngroup out %s output\nconnect in, true -> h\nconnect h, true -> out\ntrain rate 0.01 momentum 0.5 rule momentum\n' $1 $2 $3 >groups.topo
	groups groups.topo groups.csv --targets $(seq -s , -f c%g $1 $(($1 + $3 - 1))) --batch $4 --epochs 2 --until never
done
$MICROPROP train reber.topo --target cuda --precision bf16
$MICROPROP show letters.topo --stage program --target cuda --precision bf16 | head -4
# Predicted by rows and steps in time: sequences, contexts, cases with ticks of their own.
cp $SOURCE_DIR/examples/letter-sequences.topo .
printf 'group in 2 input\ngroup h 4\ngroup c 4 context\ncopy h -> c\ngroup out 1 output\nconnect in, c, true -> h\nconnect h, true -> out\ndata "n.csv"\n' >one.topo
for args in "reber.topo --batch all" "reber.topo --batch 1" "triangle.topo --batch all" "letter-sequences.topo --batch all" "one.topo"; do
	MICROPROP_CUDA_FAULT=driver $MICROPROP show $args --stage program --target cuda | sed -n 's/.*\(predicted.*\)/\1/p'
done
# The kernel as text: shape, shared memory, tiles and steps, and the predicted time. The device need not be there.
for args in "letters.topo --batch 512" "letters.topo --batch all" "letters.topo --batch 512 --input dense" "reber.topo"; do
	MICROPROP_CUDA_FAULT=driver $MICROPROP show $args --stage program --target cuda | sed '/^program cpu/,$d; s/[0-9]* threads, [0-9]* bytes/N threads, N bytes/' | grep -v '^\t  ' | head -5
done
MICROPROP_CUDA_FAULT=driver MICROPROP_CUDA_MEMORY=100000 $MICROPROP show letters.topo --stage program --target cuda
MICROPROP_CUDA_SLOT=600 $MICROPROP show letters.topo --stage program --target cuda --batch all | head -3
$MICROPROP show reber.topo --stage program --target cuda --precision bf16
sed 's/^data .*/data "none.npz"/' letters.topo >none.topo
$MICROPROP show none.topo --stage program --target cuda | head -3
$MICROPROP train encoder-8-3-8.topo --batch 3 --epochs 4 --restarts 2 --precision bf16 --target cuda --rule doug
$MICROPROP show encoder-8-3-8.topo --stage program --target cuda | head -4

# Many seeds: a thread of the GPU for each, or a multiprocessor; what it does not cover, target cpu trains.
cp $SOURCE_DIR/examples/xor.topo $SOURCE_DIR/examples/encoder-10-5-10.topo $SOURCE_DIR/examples/past-tense.topo .
seeds() { sed -E 's/.*"results": //'; }
for args in "xor.topo --epochs 150 --restarts 40" "encoder-10-5-10.topo --epochs 12 --restarts 9 --rule rprop" "encoder-8-3-8.topo --epochs 20 --restarts 7 --rate 1e6" \
	"encoder-8-3-8.topo --epochs 15 --restarts 5 --error cross-entropy --until right:0.5" "encoder-8-3-8.topo --epochs 10 --restarts 9 --batch 3" \
	"past-tense.topo --epochs 2 --restarts 5 --batch all" "letters.topo --epochs 1 --restarts 1 --batch 512 --no-shuffle" "encoder-8-3-8.topo --epochs 2 --restarts 3 --batch 3 --rule adam" \
	"encoder-8-3-8.topo --epochs 20 --restarts 6 --batch 4 --schedule cosine --warmup 3 --until right:0.5" "encoder-8-3-8.topo --epochs 2 --restarts 3 --batch 3 --rule doug" \
	"shaped.topo make:encoder:8-3 --epochs 2 --restarts 2"; do
	$MICROPROP train $args --json 2>/dev/null | seeds >cpu.json
	$MICROPROP train $args --json --target cuda 2>notes | seeds >cuda.json
	grep seeds notes
	cmp cpu.json cuda.json && grep -o '"seed"' cuda.json | wc -l
done
# Seeds that are handed over from launch to launch, the last ones to teams of threads; as many at a time as memory is there for.
printf 'group in 3 input\ngroup a 2 tanh\ngroup out 1 output\ngroup b 2\nconnect in, true -> a rate 2\nconnect in -> b frozen\nconnect a, b, true -> out\nconnect in -> out\ntrain rate 0.3\n' >mixed.topo
awk 'BEGIN { print "a,b,c,d"; for (i = 0; i < 11; i++) print i % 2 "," i % 3 / 2 "," i % 5 "," (i % 4 < 2) }' >mixed.csv
printf 'group in 6 input\ngroup h 3 tanh\ngroup out 1 output\nconnect in, true -> h\nconnect in, h, true -> out\ntrain rate 0.2\n' >pairs.topo
awk 'BEGIN { print "a,b,c,d,e,f,y"; for (i = 0; i < 5; i++) for (k = i + 1; k < 6; k++) { for (n = 0; n < 6; n++) printf "%d,", n == i || n == k; print (i + k) % 2 } }' >pairs.csv
for args in "9 64 encoder-8-3-8.topo --epochs 60 --until right:0.2 --restarts 90" "8 64 encoder-8-3-8.topo --epochs 7 --restarts 70" "8 64 pairs.topo pairs.csv --epochs 9 --until right:0.7 --restarts 70" \
	"8 128 encoder-8-3-8.topo --epochs 9 --until right:0.2 --restarts 400 --rule adam" \
	"8 64 mixed.topo mixed.csv --epochs 9 --until error:0.65 --restarts 99 --momentum 0.5" "8 64 spirals.topo --batch all --epochs 2 --until right:0.5 --restarts 70"; do
	set -- $args
	seed=$1 threads=$2
	shift 2
	$MICROPROP train "$@" --json 2>/dev/null | seeds >cpu.json
	MICROPROP_CUDA_MEMORY=$([ $threads = 128 ] && echo 1000000) MICROPROP_CUDA=emulate:$seed MICROPROP_CUDA_BLOCKS=1 MICROPROP_CUDA_THREADS=$threads $MICROPROP train "$@" --json --target cuda 2>notes | seeds >cuda.json
	cat notes
	cmp cpu.json cuda.json && echo $(grep -o '"seed"' cuda.json | wc -l) $(grep -o '"solved": true' cuda.json | wc -l)
done
for args in "xor.topo --epochs 2 --restarts 40" "encoder-8-3-8.topo --batch 3 --epochs 1 --restarts 9"; do
	$MICROPROP train $args --until never --target cuda --quiet | sed -nE 's/.* MCPS(.* in parallel)/\1/p'
done

# Inside: activations at a tick, damaged networks.
$MICROPROP train example:triangle --epochs 5 --save t.safetensors --json >/dev/null
for target in cpu cuda; do
	$MICROPROP predict example:triangle t.safetensors make:triangle --group cleanup --tick 3 --target $target --output $target.csv
	$MICROPROP lesion encoder-8-3-8.topo rest.safetensors --units code --share 0,0.5 --repeats 3 --sets 'low=1..4,high=5..8' --target $target --json | sed 's/"seconds": [^,]*, //' >$target.json
done
cmp cpu.csv cuda.csv
cmp cpu.json cuda.json

# Speeds, as far as they can be compared.
$MICROPROP bench cuda --only 8-3-8:all --rounds 1 --json | sed -E 's/": [0-9][0-9.e+-]*/": N/g'
$MICROPROP bench cuda --only nothing

# The faster of cpu and cuda, by prediction: by the limits of the run, or by an assumption where it may end before them.
auto() { # ARGUMENTS...: the notes, and what was trained
	MICROPROP_ISA=generic $MICROPROP train "$@" --threads 1 --target auto --quiet 2>log | grep -oE 'topo on [a-z]*|fingerprint .*' | tr '\n' ' '
	echo
	grep -A1 -E 'target auto|error' log
}
auto encoder-8-3-8.topo --epochs 3
auto encoder-8-3-8.topo --epochs 3000 --until never
auto encoder-8-3-8.topo --until within
auto encoder-8-3-8.topo --epochs 2000 --patience 200 --until never --test make:encoder:8-3
auto letters.topo --batch all --epochs 100 --updates 1 --until never
for limits in "--epochs 20000 --time 0.001" "--epochs 0 --time 0.001"; do
	auto letters.topo --batch all --until never $limits | sed 's/fingerprint.*//'
done
MICROPROP_CUDA_FAULT=driver auto encoder-8-3-8.topo --epochs 3
# A resumed run chooses again; where no other target has its bits, it stays.
$MICROPROP train encoder-8-3-8.topo --epochs 3 --target cuda --save begun.safetensors --quiet >/dev/null
auto encoder-8-3-8.topo --epochs 10 --resume begun.safetensors
MICROPROP_CUDA_FAULT=driver auto encoder-8-3-8.topo --epochs 10 --resume begun.safetensors
$MICROPROP train encoder-8-3-8.topo --epochs 10 --resume begun.safetensors --quiet | grep -E 'topo on|fingerprint'
$MICROPROP train letters.topo --batch all --until never --updates 1 --save letters.safetensors --quiet >/dev/null
auto letters.topo --updates 0 --epochs 20000 --until error:1000 --resume letters.safetensors
$MICROPROP train encoder-8-3-8.topo --epochs 3 --batch 3 --target cuda --precision bf16 --save begun.safetensors --quiet >/dev/null
auto encoder-8-3-8.topo --epochs 10 --resume begun.safetensors
$MICROPROP train encoder-8-3-8.topo --epochs 3 --target ref --save begun.safetensors --quiet >/dev/null
auto encoder-8-3-8.topo --epochs 10 --resume begun.safetensors
auto encoder-8-3-8.topo --epochs 10 --load begun.safetensors
# Many seeds.
auto encoder-8-3-8.topo --epochs 10 --restarts 20
auto encoder-8-3-8.topo --epochs 200 --restarts 3 --patience 20 --until never --test make:encoder:8-3
MICROPROP_CUDA_FAULT=driver auto encoder-8-3-8.topo --epochs 10 --restarts 20
# What cuda turns out to have no memory for, cpu trains.
MICROPROP_CUDA_FAULT=memory:2 auto letters.topo --batch 512 --no-shuffle --until error:1000 --restarts 8
MICROPROP_CUDA_FAULT=memory:2 auto encoder-8-3-8.topo --until error:1000 --restarts 100000
MICROPROP_CUDA_MEMORY=20000 auto letters.topo --batch all --until never --epochs 0 --time 0.001 | sed 's/fingerprint.*//'
MICROPROP_CUDA_FAULT=memory:2 auto letters.topo --batch all --until never --epochs 0 --time 0.001 --guard light | sed 's/fingerprint.*//'

# Guarded.
$MICROPROP train encoder-8-3-8.topo --epochs 30 --target cuda --guard light --json | print
$MICROPROP train encoder-8-3-8.topo --epochs 30 --target cuda --guard full --json | print

# What can go wrong; saved weights stay.
for fault in driver old none memory:3; do
	MICROPROP_CUDA_FAULT=$fault $MICROPROP train encoder-8-3-8.topo --target cuda --epochs 3
	echo "exit $?"
done
$MICROPROP train encoder-8-3-8.topo --target cuda --epochs 1 --device 5
echo "exit $?"
MICROPROP_CUDA_DEVICE=1 $MICROPROP train encoder-8-3-8.topo --target cuda --epochs 1 --json | print
for device in auto 0 1; do
	MICROPROP_CUDA_DEVICE=9 $MICROPROP train encoder-8-3-8.topo --target cuda --device $device --epochs 1 --json --save device.safetensors | print
done
MICROPROP_CUDA_DEVICE=0 $MICROPROP train encoder-8-3-8.topo --target cuda --epochs 2 --resume device.safetensors --json | print
sed 's/"device":"auto"/"device":"0"   /; s/"device":"1"/"device":"0"/' device.safetensors >older.safetensors # as files of some builds
MICROPROP_CUDA_DEVICE=9 $MICROPROP train encoder-8-3-8.topo --target cuda --epochs 2 --resume older.safetensors
$MICROPROP train encoder-8-3-8.topo --target cuda --device -1
for fault in copy:67 job:20; do
	rm -rf run
	MICROPROP_CUDA_FAULT=$fault $MICROPROP train encoder-8-3-8.topo --target cuda --epochs 30 --rule adam --test make:encoder:8-3 --run run --checkpoints-every 2 --quiet
	echo "exit $?"
	$MICROPROP train encoder-8-3-8.topo --resume "$(ls run/epoch-* | tail -1)" --epochs 30 --test make:encoder:8-3 --target cpu --json | print
done
# Seeds one after the other stay where the first one could begin, and say so.
MICROPROP_ISA=generic MICROPROP_CUDA_FAULT=memory:2 $MICROPROP train letters.topo --batch all --threads 1 --until error:1000 --epochs 1000 --restarts 2 --guard light --target auto --save seeds.st --quiet 2>&1 | grep -E "^note: target auto is cpu:|^saved"
MICROPROP_CUDA_FAULT=driver $MICROPROP train letters.topo --resume seeds.st --epochs 2 --json | print
