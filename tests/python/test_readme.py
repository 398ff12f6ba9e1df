"""The first session of README.md answers as README.md says."""

import doctest
import pathlib

README = pathlib.Path(__file__).parents[2] / "README.md"


def test_the_first_session_answers_as_it_says(server, db):
    text = README.read_text()
    session = text.split("```pycon\n")[1].split("```")[0]
    # Each test has a database of its own; the server listens on a free port.
    session = session.replace("mongodb://127.0.0.1:27017", server.uri).replace(".atlas.", f".{db.name}.")
    test = doctest.DocTestParser().get_doctest(
        session, {}, "README.md", str(README), text[: text.index("```pycon")].count("\n")
    )
    report = []
    assert doctest.DocTestRunner(verbose=False).run(test, out=report.append).failed == 0, "".join(report)
