//! Keyword arguments. An argument that the function does not know is an error.

use std::{path::PathBuf, str::FromStr};

use polybook::{
    make_book::Unfinished,
    pgn::Input,
    selection::{Form, Selection, Spelling},
};
use pyo3::{
    exceptions::{PyOverflowError, PyTypeError},
    prelude::*,
    types::{PyBool, PyDict, PyInt, PyString},
};

use crate::errors::value_error;

/// Parses the text of an argument as the command line does. An error begins with the name of the argument.
fn parsed<T: FromStr<Err: std::fmt::Display>>(text: &str, name: &str) -> PyResult<T> {
    text.parse()
        .map_err(|err| value_error(format!("{name}: {err}")))
}

/// Adds the name of the argument before the message of a `TypeError` or an `OverflowError`.
fn named(py: Python<'_>, name: &str, err: PyErr) -> PyErr {
    let message = format!("{name}: {}", err.value(py));
    if err.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(message)
    } else if err.is_instance_of::<PyOverflowError>(py) {
        PyOverflowError::new_err(message)
    } else {
        err
    }
}

/// Returns the paths of an argument: one text or path, or a list of them.
pub fn paths(argument: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<PathBuf>> {
    if let Ok(path) = argument.extract() {
        return Ok(vec![path]);
    }
    let unexpected =
        |found: &Bound<'_, PyAny>| unexpected(name, "a path or a list of paths", found);
    let items = argument.try_iter().map_err(|_| unexpected(argument))?;
    items
        .map(|item| item?.extract().map_err(|_| unexpected(argument)))
        .collect()
}

/// Returns the exception for an argument of another type than `expected`.
pub fn unexpected(name: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let kind = found.get_type();
    let kind = kind
        .name()
        .map_or_else(|err| err.to_string(), |name| name.to_string());
    PyTypeError::new_err(format!("{name} must be {expected}, not {kind}"))
}

/// Returns the values of a condition as texts. `form` is `None` for the other names of conditions.
fn condition_texts(
    name: &str,
    form: Option<Form>,
    value: &Bound<'_, PyAny>,
) -> PyResult<Vec<String>> {
    let (expected, types) = match form {
        Some(Form::Number(_)) => ("a number", (false, false, true)),
        Some(Form::Switch) => ("True or False", (true, false, false)),
        Some(form) if form.is_text() => ("a text or a list of texts", (false, true, false)),
        _ => ("a text, a number or a list of them", (true, true, true)),
    };
    let (takes_switch, takes_text, takes_number) = types;
    let text = |value: &Bound<'_, PyAny>| -> PyResult<String> {
        if let Ok(is_on) = value.cast::<PyBool>() {
            // A switch is a number in Python.
            return if takes_switch {
                Ok(is_on.is_true().to_string())
            } else {
                Err(unexpected(name, expected, value))
            };
        }
        let fits = takes_text && value.is_instance_of::<PyString>()
            || takes_number && value.is_instance_of::<PyInt>();
        if fits {
            Ok(value.str()?.to_string())
        } else {
            Err(unexpected(name, expected, value))
        }
    };
    if let Ok(text) = text(value) {
        return Ok(vec![text]);
    }
    // The characters of a text are no values.
    if value.is_instance_of::<PyString>() {
        return Err(unexpected(name, expected, value));
    }
    let items = value.try_iter();
    let items = items.map_err(|_| unexpected(name, expected, value))?;
    items
        .map(|item| text(&item?).map_err(|_| unexpected(name, expected, value)))
        .collect()
}

/// The keyword arguments of a call that have not been taken yet. An argument whose value is `None` counts as not given.
pub struct Options<'py> {
    left: Bound<'py, PyDict>,
}

impl<'py> Options<'py> {
    pub fn new(py: Python<'py>, given: Option<&Bound<'py, PyDict>>) -> PyResult<Options<'py>> {
        let left = given.map_or_else(|| Ok(PyDict::new(py)), |given| given.copy())?;
        Ok(Options { left })
    }

    /// Adds an argument.
    pub fn set(&mut self, name: &str, value: &Bound<'py, PyAny>) -> PyResult<()> {
        self.left.set_item(name, value)
    }

    pub fn py(&self) -> Python<'py> {
        self.left.py()
    }

    /// Takes an argument and converts it from its Python type. Returns `None` if it was not given.
    pub fn take<T>(&mut self, name: &str) -> PyResult<Option<T>>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let Some(value) = self.left.get_item(name)? else {
            return Ok(None);
        };
        self.left.del_item(name)?;
        if value.is_none() {
            return Ok(None);
        }
        let extracted: PyResult<T> = value.extract().map_err(Into::into);
        extracted
            .map(Some)
            .map_err(|err| named(self.py(), name, err))
    }

    /// Takes an argument that is a text and parses it as the command line does. Returns `None` if it was not given.
    pub fn parse<T: FromStr<Err: std::fmt::Display>>(&mut self, name: &str) -> PyResult<Option<T>> {
        let text: Option<String> = self.take(name)?;
        text.map(|text| parsed(&text, name)).transpose()
    }

    /// Takes an argument that is one text or a list of texts. Returns an empty list if it was not given.
    pub fn texts(&mut self, name: &str) -> PyResult<Vec<String>> {
        let Some(value) = self.take::<Bound<'py, PyAny>>(name)? else {
            return Ok(Vec::new());
        };
        if value.is_instance_of::<PyString>() {
            return Ok(vec![value.extract()?]);
        }
        let unexpected = |_| unexpected(name, "a text or a list of texts", &value);
        value.extract().map_err(unexpected)
    }

    /// Takes an argument that is a text or a list of texts, and parses it as the command line parses a list separated
    /// by commas. Returns `None` if it was not given or is an empty list.
    pub fn parse_list<T: FromStr<Err: std::fmt::Display>>(
        &mut self,
        name: &str,
    ) -> PyResult<Option<T>> {
        let texts = self.texts(name)?;
        if texts.is_empty() {
            Ok(None)
        } else {
            parsed(&texts.join(","), name).map(Some)
        }
    }

    pub fn unfinished(&mut self) -> PyResult<Option<Unfinished>> {
        match self.take::<String>("unfinished")?.as_deref() {
            None => Ok(None),
            Some("draw") => Ok(Some(Unfinished::Draw)),
            Some("skip") => Ok(Some(Unfinished::Skip)),
            Some(_) => Err(value_error("unfinished must be \"draw\" or \"skip\"")),
        }
    }

    /// Takes the options that say which games count. They have the names of the command line's options. `exact` is the
    /// default of the option with this name.
    pub fn selection(&mut self, exact: bool) -> PyResult<Selection> {
        let mut selection = Selection {
            exact,
            ..Selection::default()
        };
        let mut conditions = Selection::default();
        let fields = conditions.fields().into_iter();
        let fields = fields.map(|field| (field.name, Some(field.form)));
        for (name, form) in fields.chain(Selection::ALIASES.map(|name| (name, None))) {
            let name = Spelling::Keyword.of(name);
            let Some(value) = self.take::<Bound<'py, PyAny>>(&name)? else {
                continue;
            };
            for text in condition_texts(&name, form, &value)? {
                let set = selection.set(&name, &text);
                set.map_err(|err| value_error(format!("{name}: {err}")))?;
            }
        }
        selection.check().map_err(value_error)?;
        Ok(selection)
    }

    /// Returns the inputs at `paths`. Takes the option for the variant of games without a `Variant` tag.
    pub fn inputs(&mut self, paths: Vec<PathBuf>) -> PyResult<Vec<Input>> {
        let untagged = self.parse("untagged_variant")?.unwrap_or_default();
        let input = |path| Input::file(path).with_untagged_variant(untagged);
        Ok(paths.into_iter().map(input).collect())
    }

    /// Raises `TypeError` if an argument was not taken.
    pub fn finish(self, function: &str) -> PyResult<()> {
        match self.left.keys().iter().next() {
            None => Ok(()),
            Some(name) => {
                let problem = format!("{function}() got an unexpected keyword argument '{name}'");
                Err(PyTypeError::new_err(problem))
            }
        }
    }
}
