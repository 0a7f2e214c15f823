"""`make notebooks`: run the notebooks on a real broker, and write their outputs into them."""

from tools.notebooks.running import NOTEBOOKS, read, run, write

if __name__ == "__main__":
    for path in NOTEBOOKS:
        print(path.name)
        write(path, run(read(path)))
