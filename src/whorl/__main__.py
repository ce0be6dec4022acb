"""`python -m whorl`: the command line, where its script is not on the path."""

from whorl.cli.start import main

if __name__ == "__main__":
    main()
