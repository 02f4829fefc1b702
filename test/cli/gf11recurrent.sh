# Recurrent networks on the simulated GF11: sequences shared by processors, outputs in the order of the data.
reber=$SOURCE_DIR/examples/reber.topo
t train "$reber" --target gf11 --procs 16 --batch 32 --rate 0.007 --save reber.safetensors | grep -v fingerprint
t train "$reber" --target gf11 --procs 16 --batch 32 --rate 0.007 --compiler best --json | grep -o '"solved.*until"\|"padding.*'
t test "$reber" reber.safetensors --target gf11 --procs 5
t test "$reber" reber.safetensors --target ref
digits() { awk 'NR > 1 && NR < 10 { printf "%s", $1; for (i = 2; i <= NF; i++) printf " %.3f", $i; print "" }'; }
t predict "$reber" reber.safetensors make:reber --target gf11 --procs 3 | digits
t predict "$reber" reber.safetensors make:reber --target ref | digits
t show "$reber" --stage program --target gf11 | grep -E '^program|cases:|copies'
