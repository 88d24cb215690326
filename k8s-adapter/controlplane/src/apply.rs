//! Puts the objects of a YAML text into a control plane, as `kubectl apply --server-side` does.
//!
//! Text goes in, requests to the API server go out, one object after the other in the text's order. An
//! object's status is written too, which `kubectl` does not. Reads no files, and deletes nothing.

use std::{thread, time::Instant};

use serde_json::{Value, json};

use crate::{
    Answer, ControlPlane, Error,
    control_plane::{PATIENCE, POLL},
};

const YAML_PATCH: &str = "application/apply-patch+yaml";
/// Who owns the fields; what others own is taken from them.
const OWNER: &str = "fieldManager=gangline-controlplane&force=true";

/// Where objects of one kind are.
struct Resource {
    /// `/apis/batch/v1`
    version_path: String,
    /// `jobs`
    plural: String,
    namespaced: bool,
    has_status: bool,
}

pub(crate) fn apply(
    control_plane: &ControlPlane,
    namespace: &str,
    yaml: &str,
) -> Result<(), Error> {
    let documents: Vec<Value> =
        serde_saphyr::from_multiple(yaml).map_err(|error| bad("the YAML", &error.to_string()))?;
    for document in &documents {
        match &document["items"] {
            Value::Array(items) => items
                .iter()
                .try_for_each(|item| apply_one(control_plane, namespace, item))?,
            _ if document.is_null() => {}
            _ => apply_one(control_plane, namespace, document)?,
        }
    }
    Ok(())
}

fn apply_one(
    control_plane: &ControlPlane,
    default_namespace: &str,
    object: &Value,
) -> Result<(), Error> {
    let api_version = text(object, "/apiVersion", "apiVersion")?;
    let kind = text(object, "/kind", "kind")?;
    let name = text(object, "/metadata/name", "metadata.name")?;
    let resource = resource(control_plane, api_version, kind)?;
    let namespace = match object.pointer("/metadata/namespace") {
        Some(Value::String(namespace)) => namespace,
        _ => default_namespace,
    };
    let Resource {
        version_path,
        plural,
        ..
    } = &resource;
    let path = if resource.namespaced {
        format!("{version_path}/namespaces/{namespace}/{plural}/{name}")
    } else {
        format!("{version_path}/{plural}/{name}")
    };
    patch(control_plane, &format!("{path}?{OWNER}"), object)?;
    if resource.has_status && !object["status"].is_null() {
        let mut status = json!({ "apiVersion": api_version, "kind": kind });
        status["metadata"] = json!({ "name": name });
        status["status"] = object["status"].clone();
        patch(control_plane, &format!("{path}/status?{OWNER}"), &status)?;
    }
    if kind == "CustomResourceDefinition" {
        wait_until_served(control_plane, object)?;
    }
    Ok(())
}

fn patch(control_plane: &ControlPlane, path: &str, object: &Value) -> Result<Answer, Error> {
    // JSON is YAML.
    control_plane
        .request("PATCH", path, YAML_PATCH, &object.to_string())?
        .expect_success(path)
}

/// Asks the API server where objects of the kind are.
fn resource(
    control_plane: &ControlPlane,
    api_version: &str,
    kind: &str,
) -> Result<Resource, Error> {
    let version_path = if api_version.contains('/') {
        format!("/apis/{api_version}")
    } else {
        format!("/api/{api_version}")
    };
    let answer = control_plane
        .get(&version_path)?
        .expect_success(&version_path)?;
    let list = answer.json()?;
    let of_kind = || {
        let all = list["resources"].as_array().into_iter().flatten();
        all.filter(|resource| resource["kind"] == kind)
            .filter_map(|resource| Some((resource["name"].as_str()?, resource)))
    };
    let (plural, resource) = of_kind()
        .find(|(name, _)| !name.contains('/'))
        .ok_or_else(|| bad(kind, &format!("no such kind in {api_version}")))?;
    let status = format!("{plural}/status");
    Ok(Resource {
        version_path,
        plural: plural.into(),
        namespaced: resource["namespaced"] == true,
        has_status: of_kind().any(|(name, _)| name == status),
    })
}

/// Returns when all versions that the definition serves take objects.
fn wait_until_served(control_plane: &ControlPlane, definition: &Value) -> Result<(), Error> {
    let group = text(definition, "/spec/group", "spec.group")?;
    let plural = text(definition, "/spec/names/plural", "spec.names.plural")?;
    let versions = definition["spec"]["versions"].as_array();
    for version in versions.into_iter().flatten() {
        if version["served"] != true {
            continue;
        }
        let name = text(version, "/name", "spec.versions.name")?;
        let version = format!("/apis/{group}/{name}");
        // The list of a version's kinds may come later than the objects.
        for path in [format!("{version}/{plural}?limit=1"), version] {
            let since = Instant::now();
            loop {
                let answer = control_plane.get(&path)?;
                // 404 before it is known, 429 while its store is being made.
                if answer.status == 200 || since.elapsed() > PATIENCE {
                    answer.expect_success(&path)?;
                    break;
                }
                thread::sleep(POLL);
            }
        }
    }
    Ok(())
}

fn text<'a>(object: &'a Value, pointer: &str, field: &str) -> Result<&'a str, Error> {
    let value = object.pointer(pointer);
    value
        .and_then(Value::as_str)
        .ok_or_else(|| bad(field, &format!("a text is needed in {object}")))
}

fn bad(what: &str, reason: &str) -> Error {
    Error::Input {
        what: what.into(),
        reason: reason.into(),
    }
}
