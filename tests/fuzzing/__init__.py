"""The parts of the fuzzer: settings, data, functions and queries are drawn; checks compare what runs with Spark."""
