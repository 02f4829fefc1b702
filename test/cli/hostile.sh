# Bytes from files, names and the command line never reach the terminal: escape sequences, C1, direction overrides and bytes that are
# not UTF-8, in every position of every command.  Nothing but printable ASCII, tabs of ours, ends of lines and,
# in JSON, U+FFFD may come out.
E=$(printf 'e\033]0;x\007\033[31m')                              # C0: no reader accepts it, names of files and words have it
H=$(printf 'h\302\233\342\200\256\342\201\246\302\205\342\200\217')  # valid UTF-8: C1, overrides, isolates, marks
B=$(printf 'b\233\377')                                         # not UTF-8
N=$(printf 'n\nerror: forged\r')                                 # lines
runs=0
# The line is run for its output only.
try() {
	"$MICROPROP" "$@" >raw 2>&1
	runs=$((runs + 1))
	[ "$(LC_ALL=C sed 's/\xef\xbf\xbd//g' raw | LC_ALL=C tr -d '\t\n -~' | wc -c)" = 0 ] && ! grep -q '^error: forged' raw && return
	echo "raw bytes from: $(printf '%s ' "$@" | LC_ALL=C tr -c ' -~' '?')"
	LC_ALL=C tr -c '\n -~' '?' <raw
}
net
"$MICROPROP" train xor.topo --epochs 3 --until never --save xor.safetensors --quiet >raw 2>&1

for X in "$E" "$H" "$B" "$N"; do
	# words of the command line
	for command in train test predict show data tune gf11 model launch bench help lesion analyze import export view; do
		try $command "$X"
		try $command "--$X"
		try $command "$X" "$X" "$X"
		try $command xor.topo "--seed=$X"
		try $command xor.topo xor.safetensors "$X"
	done
	try "$X"
	try "--$X"
	try --completion "$X"
	try --man "$X"
	for option in rate rule target isa batch epochs until format inputs targets labels sequence weight names partner words words-file first \
		load resume save run every keep restarts threads guard plot run output; do
		try train xor.topo "--$option" "$X"
		try train xor.topo make:xor "--$option=$X/$X"
	done
	for verb in table1 model sweep microcode run trace switch diagnose machine schedule debug ops steps program; do
		try gf11 $verb "$X"
		try gf11 $verb --machine "$X"
		try gf11 $verb --faults "$X" forward
	done
	for option in set show base route fill svg; do
		try gf11 run forward --procs 2 "--$option" "$X"
		try gf11 debug forward --procs 2 "--$option=$X=$X" </dev/null
	done
	printf 'step\n%s\nprint %s\n' "$X" "$X" >debug.in
	try gf11 debug forward --procs 2 <debug.in
	try gf11 debug forward --procs 2 --json <debug.in
	printf '# %s\nload s[%s] -> v0\n%s v0 -> v1\n' "$X" "$X" "$X" >o.ops
	try gf11 schedule o.ops
	try gf11 debug o.ops </dev/null
	try view xor.topo --port "$X"
	try gf11 sweep "$X=1..2"
	try data --make "$X"
	try data make:"$X"
	try data --make xor "$X"
	try data --make xor "$X.csv"
	try data --make xor "$X.csv" --json
	try data "$X.csv"
	try data "$X.csv" --json
	try data "$X.csv" "$X.txt"
	try data "$X.txt"
	try data "$X.txt" "$X.npz" --split 0.5
	try show xor.topo --stage "$X"
	try launch --hosts "$X" train xor.topo --run r
	try launch --mpirun "$X" --ranks 2 train xor.topo --run r
	try model xor.topo --cluster "$X"
	MICROPROP_ISA=$X try --version --json
	MICROPROP_ISA=$X try train xor.topo
	# names of files that exist
	cp xor.topo "$X.topo"
	cp xor.safetensors "$X.safetensors"
	try show "$X.topo"
	try show "$X.topo" --json
	try show "$X.topo" --stage plan
	try show "$X.topo" --stage program --target cpu
	try train "$X.topo" --epochs 2 --save "$X.out"
	try train "$X.topo" --epochs 2 --save "$X.out" --json
	try train "$X.topo" --epochs 2 --restarts 3
	try train "$X.topo" --epochs 2 --restarts 3 --json
	try train "$X.topo" --epochs 2 --until never --run "$X.run"
	try train "$X.topo" --epochs 2 --until never --run "$X.run"
	try train "$X.topo" --epochs 4 --run "$X.run" --resume "$X.run/last.safetensors" --json
	try train "$X.topo" --load "$X.safetensors" --epochs 1
	try train "$X.topo" --load "$X.topo" --epochs 1
	try train "$X.topo" --target gf11 --procs 2 --epochs 1
	try test "$X.topo" "$X.safetensors" --outputs "$X.npy"
	try test "$X.topo" "$X.safetensors" --json
	try predict "$X.topo" "$X.safetensors" "$X.csv"
	try predict "$X.topo" "$X.safetensors" "$X.csv" --output "$X.o.csv"
	try predict "$X.topo" "$X.safetensors" "$X.csv" --output "$X.o.csv" --json
	try lesion "$X.topo" "$X.safetensors" --group "$X"
	try lesion "$X.topo" "$X.safetensors" --zero "$X"
	try analyze "$X.topo" "$X.safetensors" "$X"
	try analyze "$X.topo" "$X.safetensors" --group "$X" --json
	try export "$X.topo" "$X.safetensors" "$X.c"
	try export "$X.topo" "$X.safetensors" "$X.onnx" --json
	try export "$X.topo" "$X.safetensors" "$X.none"
	try import "$X.topo" "$X.none"
	try model "$X.topo"
	try gf11 model "$X.topo"
	try gf11 model "$X.topo" --json
	try gf11 model "$X.topo" --csv
	try launch train "$X.topo" --epochs 2 --run "$X.launched"
	mkdir "$X.folder"
	try data "$X.folder"
	try train xor.topo --save "$X.folder"
	# what is in files
	printf 'group in%s 2 input\n' "$X" >a.topo
	printf 'group in 2 input\ngroup out 1 output\nconnect %s -> out\n' "$X" >b.topo
	printf 'group in 2 input # %s\ngroup out 1 output\nconnect in -> out\ntrain rate "%s"\n' "$X" "$X" >c.topo
	printf 'group in 2 input\ngroup out 1 output\nconnect in -> out\ndata "%s"\n' "$X" >d.topo
	printf 'include "%s"\n' "$X" >e.topo
	printf 'train %s 3 rule %s target %s\n' "$X" "$X" "$X" >f.topo
	for topology in a b c d e f; do
		try show $topology.topo
		try train $topology.topo
		try show $topology.topo --json
	done
	printf 'a%s,b,name,k%s\n1,0,"x%s",c%s\n0,1,y%s,d%s\n1,1,z,"c%s"\n' "$X" "$X" "$X" "$X" "$X" "$X" "$X" >h.csv
	printf 'a,b,k\n1,%s,2\n' "$X" >i.csv
	for file in h i; do
		try data $file.csv
		try data $file.csv --json
		try data $file.csv --names name
		try data $file.csv --names name --json
		try data $file.csv --inputs "$X"
		try data $file.csv $file.npz --names name
		try data $file.npz
		try data $file.npz --json
		try data $file.npz $file.txt
		try data $file.txt
		try data $file.txt $file.out.csv
	done
	cat >k.topo <<-END
		group in 2 input
		group out 2 output
		connect in, true -> out
	END
	try train h.csv --epochs 2 --model "$X.model"
	try train i.csv --epochs 2
	try tune i.csv --trials 2
	try train k.topo h.csv --names name --epochs 2 --save k.safetensors
	try analyze k.topo k.safetensors h.csv --names name
	try lesion k.topo k.safetensors h.csv --names name
	try export k.topo k.safetensors k.js --json
	try predict k.topo k.safetensors h.csv --names name --guess
	try predict k.topo k.safetensors h.csv --names name
	try predict k.topo k.safetensors h.csv --names name --guess --json
	try test k.topo k.safetensors h.csv --names name
	try train k.topo i.csv --load k.safetensors
	printf '"n%s/0" 1 0 : 1 0\n"n%s/1" 1 0 : 0 1\ncode c%s 1 0\ncode "d%s" 0 1\n' "$X" "$X" "$X" "$X" >l.txt
	printf 'code c 1 0\ncode d 0 1\n"n\\n\\t\\r/0" 1 0 : 1 0\n%s\n' "$X" >m.txt
	printf 'code "c\\n" 1 0\ncode "d\\t\\r" 0 1\n"n\\n\\t\\r/0" 1 0 : 1 0\n"n\\n\\t\\r/1" 1 0 : 0 1\n' >o.txt
	for file in l m o; do
		try data $file.txt
		try data $file.txt --json
		try data $file.txt $file.csv
		try train k.topo $file.txt --epochs 2 --save $file.safetensors --words 2
		try predict k.topo $file.safetensors $file.txt --guess
		try predict k.topo $file.safetensors $file.txt --guess --json
		try predict k.topo $file.safetensors $file.txt
	done
	for file in p.machine p.cluster p.faults p.routine p.list p.perm; do
		printf '%s\n%s 3\nbase %s\n' "$X" "$X" "$X" >$file
		printf 'base gf11\nclock 40 ns assumed (%s)\nword %s\n' "$X" "$X" >q.machine
		try gf11 machine $file
		try gf11 machine q.machine
		try gf11 microcode $file
		try gf11 run forward --faults $file
		try gf11 switch $file
		try model xor.topo --cluster $file
		try data --format nettalk h.csv --words $file
	done
	printf 'prose\nab\t@%s\t1<\t0\n' "$X" >nettalk.data
	printf 'ab%s\t@b\t1<\t0\n' "$X" >>nettalk.data
	try data nettalk.data --format nettalk
done

# a key of a .npz file: the names in its directory have no checksum
printf 'x1,y1,weight\n1,0,2\n0,1,3\n' >weighted.csv
"$MICROPROP" data weighted.csv weighted.npz >raw 2>&1
for name in 'we\xc2\x9bht' 'w\xe2\x80\xaeht' 'wei\x9bht' 'wei\x1bht'; do
	LC_ALL=C sed "s/weight/$name/g" weighted.npz >key.npz
	try data key.npz
	try data key.npz --json
	LC_ALL=C sed "s/group/${name#w}/g" xor.safetensors >key.safetensors
	try test xor.topo key.safetensors
done
[ $runs -gt 1000 ] && echo "no raw bytes in the output of more than 1,000 command lines"

# as people see it
printf 'a,b,k\n1,2,%s\n1,3,%s\n' "$H" "$B" >seen.csv
t data seen.csv | tail -2
t data seen.csv --json | grep -o '"class_list.*'
t train "$E.none" 2>&1 | sed 1d
t train xor.topo --save "$N/x/y" 2>&1 | sed 1,3d
