// A client program of the benchmarks: a shared index informer of client-go on a typed resource, with
// two indexes and one handler, as generated code sets it up.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              FooSpec   `json:"spec"`
	Status            FooStatus `json:"status"`
}

type FooSpec struct {
	DeploymentName string `json:"deploymentName"`
	Replicas       *int32 `json:"replicas"`
}

type FooStatus struct {
	AvailableReplicas int32 `json:"availableReplicas"`
}

type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Foo `json:"items"`
}

func (in *Foo) DeepCopyObject() apiruntime.Object {
	out := *in
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if in.Spec.Replicas != nil {
		replicas := *in.Spec.Replicas
		out.Spec.Replicas = &replicas
	}
	return &out
}

func (in *FooList) DeepCopyObject() apiruntime.Object {
	out := &FooList{TypeMeta: in.TypeMeta}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		out.Items = append(out.Items, *in.Items[i].DeepCopyObject().(*Foo))
	}
	return out
}

type options struct {
	Server  string `json:"server"`
	Objects int    `json:"objects"`
	Events  int    `json:"events"`
}

type reading struct {
	cpuMs     float64
	wall      time.Time
	peakRssKb int64
}

func read() reading {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	cpu := time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	return reading{float64(cpu.Microseconds()) / 1000, time.Now(), usage.Maxrss}
}

func heapBytes() uint64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

func report(line map[string]any, since, now reading) {
	line["cpuMs"] = now.cpuMs - since.cpuMs
	line["wallMs"] = float64(now.wall.Sub(since.wall).Microseconds()) / 1000
	line["peakRssKb"] = now.peakRssKb
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(text))
}

func main() {
	var opts options
	if err := json.Unmarshal([]byte(os.Args[1]), &opts); err != nil {
		panic(err)
	}
	groupVersion := schema.GroupVersion{Group: "samplecontroller.k8s.io", Version: "v1alpha1"}
	scheme := apiruntime.NewScheme()
	scheme.AddKnownTypes(groupVersion, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(scheme, groupVersion)

	startHeap := heapBytes()
	start := read()
	client, err := rest.RESTClientFor(&rest.Config{
		Host:    opts.Server,
		APIPath: "/apis",
		QPS:     -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion:         &groupVersion,
			NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		},
	})
	if err != nil {
		panic(err)
	}
	informer := cache.NewSharedIndexInformer(
		cache.NewListWatchFromClient(client, "foos", metav1.NamespaceAll, fields.Everything()),
		&Foo{},
		0,
		cache.Indexers{
			cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
			"app": func(object any) ([]string, error) {
				return []string{object.(*Foo).Labels["app"]}, nil
			},
		},
	)
	stormed := make(chan reading)
	left := opts.Events
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		UpdateFunc: func(_, _ any) {
			if left--; left == 0 {
				stormed <- read()
			}
		},
	})
	if err != nil {
		panic(err)
	}
	go informer.Run(make(chan struct{}))
	for !registration.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	synced := read()
	heap := heapBytes() - startHeap
	report(map[string]any{"at": "synced", "startCpuMs": start.cpuMs, "heapBytes": heap}, start, synced)
	if opts.Events == 0 {
		runtime.KeepAlive(informer)
		return
	}
	begin := read()
	report(map[string]any{"at": "stormed"}, begin, <-stormed)
}
