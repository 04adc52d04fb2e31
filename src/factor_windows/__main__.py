"""Run the command line as `python -m factor_windows`."""

from factor_windows.cli.main import main

if __name__ == "__main__":
    main()
