"""Grading a class: from a folder of notebooks to a table and pages (`python -m bert_course.grade`)."""
