defmodule MixedTest do
  use ExUnit.Case, async: true

  for size <- [0, 1, 10, 100] do
    test "#{size} numbers are sorted" do
      numbers = Enum.shuffle(1..unquote(size)//1)
      assert Mixed.sorted(numbers) == Enum.to_list(1..unquote(size)//1)
    end
  end

  @tag :tmp_dir
  test "chance", %{tmp_dir: folder} do
    File.cd!(folder, fn -> :chance.main() end)
  end
end
