name:{a b i:0 t:0;
