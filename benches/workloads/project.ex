# A module of the project that `compile_elixir` compiles. The workload writes it many times, each with another number in
# the place of NUMBER.
defmodule OrderNUMBER.Line do
  @moduledoc "A line of an order."
  @enforce_keys [:product, :price]
  defstruct [:product, :price, amount: 1, notes: []]

  @type t :: %__MODULE__{product: atom, price: integer, amount: pos_integer, notes: [String.t()]}

  @spec total(t) :: integer
  def total(%__MODULE__{price: price, amount: amount}), do: price * amount
end

defimpl String.Chars, for: OrderNUMBER.Line do
  def to_string(line), do: "#{line.amount} x #{line.product} at #{line.price}"
end

defmodule OrderNUMBER do
  @moduledoc "A server that holds an order."
  use GenServer
  alias OrderNUMBER.Line

  @products [apple: 3, bread: 7, cheese: 12, date: 2, egg: 1]

  for {product, price} <- @products do
    def price(unquote(product)), do: {:ok, unquote(price)}
  end

  def price(other), do: {:error, {:unknown, other}}

  def start_link(options), do: GenServer.start_link(__MODULE__, options, name: __MODULE__)
  def add(server, product, amount \\ 1), do: GenServer.call(server, {:add, product, amount})
  def lines(server), do: GenServer.call(server, :lines)

  @impl true
  def init(options) do
    {:ok, %{lines: [], limit: Keyword.get(options, :limit, 100), customer: options[:customer]}}
  end

  @impl true
  def handle_call({:add, product, amount}, _from, %{lines: lines, limit: limit} = state)
      when is_integer(amount) and amount > 0 do
    with {:ok, price} <- price(product),
         line = %Line{product: product, price: price, amount: amount},
         true <- sum([line | lines]) <= limit || {:error, :limit} do
      send(self(), {:added, "#{line}"})
      {:reply, :ok, %{state | lines: [line | lines]}}
    else
      {:error, reason} -> {:reply, {:error, reason}, state}
    end
  end

  def handle_call(:lines, _from, state) do
    shown =
      state.lines
      |> Enum.group_by(& &1.product)
      |> Enum.map(fn {product, lines} -> {product, lines |> Enum.map(&Line.total/1) |> Enum.sum()} end)
      |> Enum.sort_by(fn {_, sum} -> -sum end)
      |> Enum.into(%{})

    {:reply, shown, state}
  end

  @impl true
  def handle_info({:expire, age}, state) do
    lines = for %Line{notes: [_ | _]} = line <- state.lines, age > 10, do: line
    {:noreply, put_in(state.lines, lines)}
  end

  def parse(text) do
    text
    |> String.split("\n", trim: true)
    |> Enum.reduce_while({:ok, []}, fn line, {:ok, lines} ->
      case String.split(line, ",") do
        [product, amount] -> {:cont, {:ok, [{String.trim(product), String.to_integer(amount)} | lines]}}
        <<"#", _::binary>> -> {:cont, {:ok, lines}}
        _ -> {:halt, {:error, "line #{inspect(line)}"}}
      end
    end)
  rescue
    error in ArgumentError -> {:error, Exception.message(error)}
  end

  def decode(<<kind::8, size::16, body::binary-size(size), rest::binary>>, lines) do
    case kind do
      1 -> decode(rest, [body | lines])
      2 -> decode(rest, [String.upcase(body) | lines])
      _ -> {:error, kind}
    end
  end

  def decode(<<>>, lines), do: {:ok, Enum.reverse(lines)}

  defp sum(lines), do: Enum.reduce(lines, 0, &(Line.total(&1) + &2))
end
