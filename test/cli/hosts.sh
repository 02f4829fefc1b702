# Hosts of launch: names by a strict grammar, and no shell sees them.
net
for hosts in 'localhost;touch X' '-oProxyCommand=touch X' 'a b' '$(touch X)' '`touch X`' 'a,,b' '' '@a' 'a@' 'a@-b' 'a:0' 'a:-1' 'a:4 ' 'a:99999' 'a:1:2' \
	'a/b'; do
	t launch -n 2 "--hosts=$hosts" --mpirun false -- train xor.topo --save w.safetensors
done
t launch -n 2 --hosts a --mpirun false --check ' ' -- train xor.topo --save w.safetensors

# What checks hosts is started as it is written, with the name as its last word.
cat >check <<'END'
#!/bin/sh
printf '<%s>' "$@" >>asked
END
chmod +x check
t launch -n 2 --hosts user@a-1.example:2,b_2 --mpirun false --check './check ;touch $HOME "a b"' -- train xor.topo --save w.safetensors 2>&1 | grep -v '^  see its'
sort asked
echo
ls X ';touch' 2>&1
