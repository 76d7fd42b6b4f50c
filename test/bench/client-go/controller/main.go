// Command controller is a controller of the benchmarks, built as sample-controller: shared informers, a rate-limited
// work queue, and an event broadcaster. It keeps a Deployment for each Foo, emits an event, and writes the status.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	"crd-controller/test/bench/client-go/foo"
)

const component = "sample-controller"

type controller struct {
	kube        kubernetes.Interface
	client      *rest.RESTClient
	foos        cache.Indexer
	deployments appslisters.DeploymentLister
	queue       workqueue.TypedRateLimitingInterface[cache.ObjectName]
	recorder    record.EventRecorder
}

func main() {
	workers := flag.Int("workers", 2, "number of concurrent syncs")
	flag.Parse()
	if err := run(context.Background(), *workers); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, workers int) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	client, err := foo.NewClient(config)
	if err != nil {
		return err
	}
	// References in events need the kind.
	foo.AddToScheme(scheme.Scheme)
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartStructuredLogging(0)
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: kube.CoreV1().Events("")})

	factory := informers.NewSharedInformerFactory(kube, 30*time.Second)
	deployments := factory.Apps().V1().Deployments()
	foos := cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(client, "foos", metav1.NamespaceAll, fields.Everything()),
		&foo.Foo{},
		30*time.Second,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
	)
	c := &controller{
		kube:        kube,
		client:      client,
		foos:        foos.GetIndexer(),
		deployments: deployments.Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
		),
		recorder: broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}),
	}
	fooEvents, err := foos.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, next any) { c.enqueue(next) },
	})
	if err != nil {
		return err
	}
	deploymentEvents, err := deployments.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.enqueueOwner,
		UpdateFunc: func(last, next any) {
			if last.(*appsv1.Deployment).ResourceVersion != next.(*appsv1.Deployment).ResourceVersion {
				c.enqueueOwner(next)
			}
		},
		DeleteFunc: c.enqueueOwner,
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	go foos.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), fooEvents.HasSynced, deploymentEvents.HasSynced) {
		return fmt.Errorf("the caches did not sync")
	}
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for c.processNext(ctx) {
			}
		})
	}
	running.Wait()
	return nil
}

func (c *controller) enqueue(object any) {
	if name, err := cache.ObjectToName(object); err == nil {
		c.queue.Add(name)
	}
}

func (c *controller) enqueueOwner(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	deployment, ok := object.(*appsv1.Deployment)
	if !ok {
		return
	}
	owner := metav1.GetControllerOf(deployment)
	if owner == nil || owner.Kind != "Foo" {
		return
	}
	if found, exists, err := c.foos.GetByKey(deployment.Namespace + "/" + owner.Name); err == nil && exists {
		c.enqueue(found)
	}
}

func (c *controller) processNext(ctx context.Context) bool {
	name, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(name)
	if err := c.sync(ctx, name); err != nil {
		c.queue.AddRateLimited(name)
		return true
	}
	c.queue.Forget(name)
	return true
}

func (c *controller) sync(ctx context.Context, name cache.ObjectName) error {
	found, exists, err := c.foos.GetByKey(name.String())
	if err != nil || !exists {
		return err
	}
	object := found.(*foo.Foo)
	deployment, err := c.deployments.Deployments(name.Namespace).Get(object.Spec.DeploymentName)
	if errors.IsNotFound(err) {
		deployment, err = c.kube.AppsV1().Deployments(name.Namespace).
			Create(ctx, desired(object), metav1.CreateOptions{FieldManager: component})
	}
	if err != nil {
		return err
	}
	if !metav1.IsControlledBy(deployment, object) {
		return fmt.Errorf("deployment %s already exists", deployment.Name)
	}
	if replicas := object.Spec.Replicas; replicas != nil && *replicas != *deployment.Spec.Replicas {
		deployment, err = c.kube.AppsV1().Deployments(name.Namespace).
			Update(ctx, desired(object), metav1.UpdateOptions{FieldManager: component})
		if err != nil {
			return err
		}
	}
	status := &object.Status
	if status.ObservedGeneration == object.Generation && len(status.Conditions) > 0 &&
		status.AvailableReplicas == deployment.Status.AvailableReplicas {
		return nil
	}
	c.recorder.Event(object, corev1.EventTypeNormal, "Synced", "Foo synced successfully")
	return c.client.Put().Namespace(name.Namespace).Resource("foos").Name(name.Name).SubResource("status").
		VersionedParams(&metav1.UpdateOptions{FieldManager: component}, scheme.ParameterCodec).
		Body(withStatus(object, deployment)).Do(ctx).Error()
}

func desired(object *foo.Foo) *appsv1.Deployment {
	labels := map[string]string{"app": "nginx", "controller": object.Name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name:      object.Spec.DeploymentName,
			Namespace: object.Namespace,
			OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(object, foo.GroupVersion.WithKind("Foo")),
			},
		},
		Spec: appsv1.DeploymentSpec{
			Replicas: object.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}},
				},
			},
		},
	}
}

func withStatus(object *foo.Foo, deployment *appsv1.Deployment) runtime.Object {
	next := object.DeepCopy()
	available := deployment.Status.AvailableReplicas
	next.Status.ObservedGeneration = object.Generation
	next.Status.AvailableReplicas = available
	next.Status.Selector = "app=nginx,controller=" + object.Name
	message := fmt.Sprintf("%d of %d replicas are available", available, *deployment.Spec.Replicas)
	for _, condition := range []metav1.Condition{
		{Type: "Ready", Status: metav1.ConditionFalse, Reason: "DeploymentNotAvailable"},
		{Type: "Reconciling", Status: metav1.ConditionTrue, Reason: "Progressing"},
	} {
		condition.ObservedGeneration = object.Generation
		condition.Message = message
		meta.SetStatusCondition(&next.Status.Conditions, condition)
	}
	return next
}
