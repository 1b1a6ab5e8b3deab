# The longest Collatz sequence below a limit, in Elixir.
#
# Shows: streams and anonymous functions in a profile, and the modules of Elixir itself.
defmodule Collatz do
  def longest(limit) do
    1..limit
    |> Stream.map(fn n -> {steps(n, 0), n} end)
    |> Enum.max()
  end

  defp steps(1, count), do: count
  defp steps(n, count) when rem(n, 2) == 0, do: steps(div(n, 2), count + 1)
  defp steps(n, count), do: steps(3 * n + 1, count + 1)
end

{steps, n} = Collatz.longest(60_000)
IO.puts("#{n} takes #{steps} steps")
