defmodule Mixed do
  def sorted(numbers), do: Enum.sort(numbers)
end
