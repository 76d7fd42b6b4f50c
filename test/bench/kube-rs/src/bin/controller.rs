//! A controller of the benchmarks on kube-rs: keeps a Deployment for each Foo, emits an event, and writes
//! the status.
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use crd_controller_bench::{Foo, FooStatus};
use futures::StreamExt;
use k8s_openapi::{
    api::{
        apps::v1::{Deployment, DeploymentSpec},
        core::v1::{Container, PodSpec, PodTemplateSpec},
    },
    apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time},
    jiff::Timestamp,
};
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{ObjectMeta, Patch, PatchParams, PostParams},
    runtime::{
        Controller,
        controller::{Action, Config},
        events::{Event, EventType, Recorder},
        reflector::{ObjectRef, Store},
        watcher,
    },
};

const COMPONENT: &str = "sample-controller";

struct Context {
    client: Client,
    recorder: Recorder,
    deployments: Store<Deployment>,
    /// Generation and available replicas of the last written status, by uid of the Foo.
    written: Mutex<HashMap<String, Observed>>,
}

type Observed = (Option<i64>, i32);

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // 0 is the default: as many concurrent syncs as there are changed objects.
    let workers = match std::env::args().nth(1) {
        Some(argument) => argument.trim_start_matches("--workers=").parse()?,
        None => 0,
    };
    let client = Client::try_default().await?;
    let (deployments, writer) = kube::runtime::reflector::store();
    let owned =
        kube::runtime::WatchStreamExt::touched_objects(kube::runtime::WatchStreamExt::reflect(
            kube::runtime::WatchStreamExt::default_backoff(watcher(
                Api::<Deployment>::all(client.clone()),
                watcher::Config::default(),
            )),
            writer,
        ));
    let context = Context {
        recorder: Recorder::new(client.clone(), COMPONENT.into()),
        client: client.clone(),
        deployments,
        written: Mutex::default(),
    };
    Controller::new(Api::<Foo>::all(client), watcher::Config::default())
        .owns_stream(owned)
        .with_config(Config::default().concurrency(workers))
        .run(
            |foo, context| async move { sync(&foo, &context).await },
            |_, _, _| Action::requeue(Duration::from_secs(1)),
            Arc::new(context),
        )
        .for_each(|result| async move {
            if let Err(error) = result {
                eprintln!("{error}");
            }
        })
        .await;
    Ok(())
}

async fn sync(foo: &Foo, context: &Context) -> Result<Action, kube::Error> {
    let namespace = foo.namespace().unwrap_or_default();
    let name = foo.spec.deployment_name.as_str();
    let api = Api::<Deployment>::namespaced(context.client.clone(), &namespace);
    let params = PostParams {
        field_manager: Some(COMPONENT.into()),
        ..Default::default()
    };
    let cached = context
        .deployments
        .get(&ObjectRef::new(name).within(&namespace));
    let deployment = match cached {
        None => Arc::new(api.create(&params, &desired(foo)).await?),
        Some(found) if found.spec.as_ref().and_then(|spec| spec.replicas) != foo.spec.replicas => {
            Arc::new(api.replace(name, &params, &desired(foo)).await?)
        }
        Some(found) => found,
    };
    let available = deployment
        .status
        .as_ref()
        .and_then(|status| status.available_replicas)
        .unwrap_or(0);
    if let Some(status) = &foo.status
        && status.observed_generation == foo.metadata.generation
        && status.available_replicas == available
    {
        return Ok(Action::await_change());
    }
    // The reflector may be behind: then the event of the new Deployment would cause a second event and status.
    let uid = foo.uid().unwrap_or_default();
    let observed = (foo.metadata.generation, available);
    let written = || {
        context
            .written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    };
    if written().get(&uid) == Some(&observed) {
        return Ok(Action::await_change());
    }
    let event = Event {
        type_: EventType::Normal,
        reason: "Synced".into(),
        note: Some("Foo synced successfully".into()),
        action: "Sync".into(),
        secondary: None,
    };
    context
        .recorder
        .publish(&event, &foo.object_ref(&()))
        .await?;
    // Without a resourceVersion, as in the examples of kube-rs: the reflector may be behind.
    let patch =
        Patch::Merge(serde_json::json!({ "status": status_of(foo, &deployment, available) }));
    let params = PatchParams {
        field_manager: params.field_manager,
        ..Default::default()
    };
    Api::<Foo>::namespaced(context.client.clone(), &namespace)
        .patch_status(&foo.name_any(), &params, &patch)
        .await?;
    written().insert(uid, observed);
    Ok(Action::await_change())
}

fn desired(foo: &Foo) -> Deployment {
    let labels = BTreeMap::from([
        ("app".to_owned(), "nginx".to_owned()),
        ("controller".to_owned(), foo.name_any()),
    ]);
    Deployment {
        metadata: ObjectMeta {
            name: Some(foo.spec.deployment_name.clone()),
            namespace: foo.namespace(),
            owner_references: foo.controller_owner_ref(&()).map(|owner| vec![owner]),
            ..Default::default()
        },
        spec: Some(DeploymentSpec {
            replicas: foo.spec.replicas,
            selector: LabelSelector {
                match_labels: Some(labels.clone()),
                ..Default::default()
            },
            template: PodTemplateSpec {
                metadata: Some(ObjectMeta {
                    labels: Some(labels),
                    ..Default::default()
                }),
                spec: Some(PodSpec {
                    containers: vec![Container {
                        name: "nginx".into(),
                        image: Some("nginx:latest".into()),
                        ..Default::default()
                    }],
                    ..Default::default()
                }),
            },
            ..Default::default()
        }),
        status: None,
    }
}

fn status_of(foo: &Foo, deployment: &Deployment, available: i32) -> FooStatus {
    let wanted = deployment
        .spec
        .as_ref()
        .and_then(|spec| spec.replicas)
        .unwrap_or(1);
    let condition = |type_: &str, status: &str, reason: &str| Condition {
        type_: type_.into(),
        status: status.into(),
        reason: reason.into(),
        message: format!("{available} of {wanted} replicas are available"),
        observed_generation: foo.metadata.generation,
        last_transition_time: Time(Timestamp::now()),
    };
    FooStatus {
        observed_generation: foo.metadata.generation,
        available_replicas: available,
        selector: Some(format!("app=nginx,controller={}", foo.name_any())),
        conditions: vec![
            condition("Ready", "False", "DeploymentNotAvailable"),
            condition("Reconciling", "True", "Progressing"),
        ],
    }
}
