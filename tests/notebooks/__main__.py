"""`make notebooks`: run the notebooks on a real broker, and write their outputs into them."""

from tests.notebooks.running import NOTEBOOKS, read, run, write

for path in NOTEBOOKS:
    print(path.name)
    write(path, run(read(path)))
