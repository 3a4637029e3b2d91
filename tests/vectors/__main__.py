from tests.vectors import golden

for path, data in golden.files().items():
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)
