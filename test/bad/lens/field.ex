defI: x;
I: 0 1 T: 1;
