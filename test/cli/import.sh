# Files of SNNS, FANN and LENS: converted, used as they are, and what cannot be carried over named with its line.
cp "$SOURCE_DIR"/test/legacy/files/* .
t import layers.net layers.topo
cat layers.topo
t import layers.net layers.safetensors
t predict layers.net layers.pat
"$MICROPROP" predict layers.net layers.pat >a
"$MICROPROP" predict layers.safetensors layers.pat >b
cmp a b && echo "the same outputs"
t test layers.net layers.pat --json | sed 's/,.*//'
t show elman.net --stage net
t predict elman.net elman.pat
t train elman.net elman.pat --epochs 1 --rate 0 --target ref --quiet | grep '^error'
t test elman.net elman.pat --target ref | grep '^error'
t train elman.net elman.pat --restarts 2
sed -e 's/Act_TanH_Xdiv2/Act_Signum/' -e 's/Topological_Order/Serial_Order/' layers.net >other.net
t import other.net other.safetensors
t import other.net other.safetensors --lossy
t import layers.pat layers.npz
t import layers.pat layers.npz --json
t data layers.npz back.pat
t data layers.npz back.data
t data layers.npz back.ex
for file in back.pat back.data back.ex; do
	"$MICROPROP" data $file $file.csv
	"$MICROPROP" data layers.pat layers.csv >/dev/null
	cmp $file.csv layers.csv && echo "$file: the same cases"
done
printf '4 2 1\n0 0 0\n0 1 1\n1 0 1\n1 1 0\n' >either
t data either
t data either --format fann | grep cases
t data either --format text | grep cases
cp either either.data
t data either.data | grep cases
printf 'I: (a) 0 1 (b) 1 T: (c) 1 0;\n' >named.ex
t data named.ex
t data named.ex --groups 'a:2,b:1>c:2' | grep -E 'inputs|targets'
t data named.ex --groups 'a:2,b>c:2'
t import layers.net layers.net2
t import layers.net two.net
t predict small-fann.net layers.pat
printf '3 2 1\n0 1\n1\n1 1\n0\n0.5 -1\n0.25\n' >small.data
t predict small-fann.net small.data
t import small-fann.net again.net --to fann
t predict again.net small.data
t import small-fann.net again.net --to snns
t import elman.net again.net --to snns
t predict again.net elman.pat
t import elman.net again.net --to fann
t import xor.in xor.topo
cat xor.topo
t train xor.in --quiet --target ref | sed '/^trained/d'
t import xor.in xor.wt xor.safetensors
t predict xor.safetensors xor.ex
t import xor.in xor.ex xor.csv
t import xor.in xor.safetensors --format lens
t import settle.in settle.topo
t import shaped.in shaped.topo
cat shaped.topo
cat settle.topo
printf 'proc go {} { train }\naddNet a 2 3 1\nautoPlot\nsetObj zeroErrorRadius 0.1\n' >go.in
t import go.in go.topo
t import go.in go.topo --lossy
t import srn.cf srn.topo
cat srn.topo
t import srn.cf srn.wts srn.safetensors
t predict srn.cf srn.wts srn.data
t test srn.safetensors srn.data | grep '^error'
t train srn.cf --load srn.wts --rate 0 --epochs 1 --target ref --quiet | grep '^error'
t data srn.data srn.csv
cat srn.csv
t data srn.teach
t import layers.net xor.wt other.safetensors
echo "a file: that is no network" >prose
for command in "import prose out.topo" "train prose" "test prose layers.pat" "predict prose layers.pat" "show prose" "train xor.in prose"; do
	t $command
done
t show layers.pat
(echo "# a comment first" && cat layers.net) >comment.net
t import comment.net comment.safetensors
sizes() {
	printf 'SNNS pattern definition file V3.2\ngenerated at\nNo. of patterns : 2\nNo. of input units : 1\nNo. of output units : 1\n'
	printf 'No. of variable input dimensions : 2\nMaximum input dimensions : [ 3 2 ]\n[ 3 2 ] 1 0 1 0 1 0\n1\n[ %s ] 1 0 0 0 0 0\n0\n' "$1"
}
sizes '3 2' >sizes.pat
t data sizes.pat | grep -E 'cases|inputs'
sizes '2 3' >sizes.pat
t data sizes.pat
cat >more.in <<'END'
addNet more -i 3 -t 4 CONTINUOUS 4 {5 TANH} {3 OUTPUT}
randWeights -range 0.1 -g {hidden output}
freezeWeights -g output
setObj hidden.dtScale 0.5
setObj testGroupCrit 0.2
setObj targetRadius 0.1
setObj output.zeroErrorRadius 0.05
setObj output.errorScale 2
setObj hidden.gain 0.5
train 50 -a steepest
END
t import more.in more.topo
cat more.topo
printf 'I: 0 1 0 1 T: 1 0 0;\nI: 1 1 0 0 T: 0 1 1;\n' >more.ex
t train more.topo more.ex --quiet --target ref | grep -E '^(bits|within)'
echo 'setObj hidden.clampStrength 0.5
setObj postExampleProc {puts done}' >>more.in
t import more.in more.topo
printf 'addNet two 2\naddGroup a 3 OUTPUT SUM_SQUARED\naddGroup b 2 OUTPUT\nconnectGroups input {a b}\n' >two.in
t import two.in two.topo
cat two.topo
