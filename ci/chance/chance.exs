Code.append_path(".")
:chance.main()
IO.inspect({System.os_time(), System.unique_integer(), :rand.uniform(), Map.new(1..100, &{make_ref(), &1})})
