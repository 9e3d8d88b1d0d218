module example.org/beetle

go 1.21
