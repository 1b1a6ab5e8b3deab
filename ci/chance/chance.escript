#!/usr/bin/env escript
%%! -pa .

main(Arguments) -> chance:main(Arguments).
