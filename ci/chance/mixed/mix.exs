defmodule Mixed.MixProject do
  use Mix.Project

  def project do
    [
      app: :mixed,
      version: "1.0.0",
      releases: [mixed: [include_erts: false, include_executables_for: [:unix]]]
    ]
  end

  def application, do: [extra_applications: [:logger]]
end
