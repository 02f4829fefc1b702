proc:{puts hello};
I: 0 1 T: 1;
