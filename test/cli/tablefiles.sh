# Files of table commands: nothing that is read is overwritten; tables and topology files are told apart.
cp "$SOURCE_DIR/examples/iris.csv" c.csv
t train c.csv --save model.safetensors --quiet --epochs 1 --json >/dev/null
cat >net.topo <<-EOF
	group in 4 input
	group out 3 softmax output
	connect in, true -> out
	train epochs 2
	data "c.csv" targets species
	EOF
t train net.topo --save weights.safetensors --quiet --json >/dev/null
ln c.csv link.csv
cp c.csv other.csv
t train c.csv --save c.csv
t train c.csv --save c.csv --force
t train c.csv --save link.csv
t train c.csv --no-save --svg c.csv
t train c.csv --no-save --write-topo c.csv
t train c.csv --no-save --test other.csv --svg other.csv
t train net.topo --save c.csv --force
t train net.topo --svg net.topo
t tune c.csv --save c.csv
t tune c.csv --log c.csv
t predict model.safetensors c.csv --output c.csv
t predict model.safetensors c.csv --output model.safetensors
t test model.safetensors c.csv --cases=c.csv
t test model.safetensors c.csv --csv c.csv
t test model.safetensors c.csv --outputs c.csv
t test net.topo weights.safetensors --csv c.csv
t data c.csv c.csv
t import c.csv c.csv
t import model.safetensors model.safetensors
t train net.topo --load weights.safetensors --svg weights.safetensors
t train net.topo --load weights.safetensors --save weights.safetensors --json >/dev/null
cmp c.csv other.csv && echo "the table is as it was"

# A model takes the place of a model only, unless it is forced to. An empty file may be a reserved name.
t train c.csv --save other.csv
t train net.topo --save other.csv
t tune c.csv --save other.csv
t train net.topo --save other.csv --force --json >/dev/null
: >empty
t train net.topo --save empty --json >/dev/null
# Noticed before the work.
t tune c.csv --save missing/c.safetensors

t train net.topo --save x.safetensors --no-save

# Options of tables with a topology file.
for option in "--hidden 5" "--folds 5" "--holdout 0.2" --no-refit --balance "--task classes" "--write-topo x.topo" "--fold a" "--category a"; do
	t train net.topo $option
done

# The rows held out, and where there are none.
head -n 31 c.csv >30.csv
t train c.csv --no-save --test 30.csv --epochs 1 2>&1 | grep "held out\|^on "
sed -n '1p;2,8p;52,58p;102,107p' c.csv >20.csv
t train 20.csv --no-save --epochs 1 2>&1 | grep "held out"
t train c.csv --no-save --restarts 3 --holdout 0 --epochs 1 2>&1 | grep "best of"

# A table in place of a model; a table by its content alone.
cp c.csv iris
t predict c.csv
t predict iris c.csv
t test c.csv c.csv
t show c.csv
t show make:xor
t train iris --no-save --epochs 1 2>&1 | grep "held out"
"$MICROPROP" train - --no-save --epochs 1 --quiet <c.csv | head -n 1
cat c.csv | "$MICROPROP" train - --no-save --epochs 1 --quiet | head -n 1
cat c.csv | "$MICROPROP" train /dev/stdin --no-save --epochs 1 --quiet | head -n 1
cat c.csv | t train -
cat net.topo | "$MICROPROP" train - --quiet | head -n 1

# The topology that is written can be trained as it stands; where it cannot, it says why.
t train c.csv --no-save --quiet --epochs 1 --json --write-topo c.topo >/dev/null
cat c.topo
t train c.topo c.csv --quiet | grep "error\|right"
mkdir sub
t train c.csv --no-save --quiet --epochs 1 --json --write-topo sub/c.topo >/dev/null
t train sub/c.topo --quiet | grep "error\|right"
t train c.csv --no-save --write-topo c.topo
awk -F, -v OFS=, '{ print NR - 1, NR == 9 ? "" : $1, substr($5, 1, 2), $3 }' c.csv | sed '1s/.*/n,a,b,y/' >mixed.csv
t train mixed.csv --no-save --quiet --epochs 1 --json --inputs b --write-topo category.topo >/dev/null
grep -v ^connect category.topo
t train mixed.csv --no-save --quiet --epochs 1 --json --inputs a --write-topo missing.topo >/dev/null
grep "^# There" missing.topo
t train category.topo mixed.csv --inputs b --targets y 2>&1 | grep "error\|note"
sed '9d' mixed.csv >whole.csv
t train whole.csv --no-save --quiet --epochs 1 --json --inputs a --write-topo whole.topo >/dev/null
grep "^data\|^# Targets" whole.topo
t train whole.topo --quiet | grep RMSE
