"""The authors' tools: notebooks run in place, exercises from solutions, stored runs, what is left to cover."""
