"""Let `python -m factor_windows` be the command line."""

from factor_windows.cli.main import main

if __name__ == "__main__":
    main()
