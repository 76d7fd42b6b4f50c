//! The type Foo.
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use serde::{Deserialize, Serialize};

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize)]
#[kube(
    group = "samplecontroller.k8s.io",
    version = "v1alpha1",
    kind = "Foo",
    status = "FooStatus",
    schema = "disabled",
    namespaced
)]
#[serde(rename_all = "camelCase")]
pub struct FooSpec {
    pub deployment_name: String,
    pub replicas: Option<i32>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FooStatus {
    pub observed_generation: Option<i64>,
    #[serde(default)]
    pub available_replicas: i32,
    pub selector: Option<String>,
    #[serde(default)]
    pub conditions: Vec<Condition>,
}
