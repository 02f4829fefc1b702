# Files that version 0.1 wrote are read: data, weights, a run's folder, checkpoints that go on to the same bits; with
# rule adam on target cpu, whose constants are more exact since, to other bits and with a note.
cp -r "$SOURCE_DIR"/test/data/v0.1/. . && chmod -R u+w .
t test encoder.topo run/best.safetensors
t data encoder.npz
resume() {
	echo "resume $1"
	"$MICROPROP" train encoder.topo --resume "$1" --epochs 60 --json --quiet 2>&1 | grep -oE '(note: .*|"(target|epochs|fingerprint)": "?[a-z0-9]+"?)'
}
resume checkpoint.safetensors
resume run/last.safetensors
resume half.safetensors
resume gf11.safetensors
resume momentum.safetensors
# The same as a run that was not interrupted.
sed -i "1i defaults 1989" encoder.topo
"$MICROPROP" train encoder.topo --rule momentum --epochs 60 --json --quiet | grep -oE '"fingerprint": "[a-z0-9]+"'
