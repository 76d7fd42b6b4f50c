// Package fixtures replaces upstream's fixture that starts an API server and etcd for each test: it returns a
// client configuration of the server in $KUBECONFIG, and deletes the CustomResourceDefinitions of the test.
package fixtures

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	serveroptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	servertesting "k8s.io/apiextensions-apiserver/pkg/cmd/server/testing"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

var errNeedsEtcd = errors.New("the test reads or writes etcd")

// StartDefaultServer returns options without a usable etcd.
func StartDefaultServer(t servertesting.Logger, flags ...string) (func(), *rest.Config, *serveroptions.CustomResourceDefinitionsServerOptions, error) {
	for _, flag := range flags {
		if !strings.HasPrefix(flag, "--watch-cache=") {
			return nil, nil, nil, fmt.Errorf("the test needs a server with %s", flag)
		}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err != nil {
		return nil, nil, nil, err
	}
	config.QPS = -1
	crds := clientset.NewForConfigOrDie(config)
	objects := dynamic.NewForConfigOrDie(config)
	if err := deleteDefinitions(crds, objects); err != nil {
		return nil, nil, nil, err
	}
	tearDown := func() {
		if err := deleteDefinitions(crds, objects); err != nil {
			t.Logf("cannot delete the CustomResourceDefinitions: %v", err)
		}
	}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return &namespaceCreator{inner: inner, namespaces: objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})}
	})
	options := serveroptions.NewCustomResourceDefinitionsServerOptions(io.Discard, io.Discard)
	options.RecommendedOptions.Etcd.StorageConfig.Transport.ServerList = []string{"http://127.0.0.1:1"}
	return tearDown, config, options, nil
}

// StartDefaultServerWithConfigAccess always fails.
func StartDefaultServerWithConfigAccess(servertesting.Logger, ...string) (func(), *rest.Config, apiserver.CompletedConfig, error) {
	return nil, nil, apiserver.CompletedConfig{}, errNeedsEtcd
}

// StartDefaultServerWithClients returns clients of the server.
func StartDefaultServerWithClients(t servertesting.Logger, flags ...string) (func(), clientset.Interface, dynamic.Interface, error) {
	tearDown, config, _, err := StartDefaultServer(t, flags...)
	if err != nil {
		return nil, nil, nil, err
	}
	return tearDown, clientset.NewForConfigOrDie(config), dynamic.NewForConfigOrDie(config), nil
}

// StartDefaultServerWithClientsAndEtcd always fails.
func StartDefaultServerWithClientsAndEtcd(servertesting.Logger, ...string) (func(), clientset.Interface, dynamic.Interface, *clientv3.Client, string, error) {
	return nil, nil, nil, nil, "", errNeedsEtcd
}

// IntegrationEtcdServers returns no server.
func IntegrationEtcdServers() []string {
	return nil
}

// deleteDefinitions deletes all CustomResourceDefinitions and their objects, which keep no finalizer.
func deleteDefinitions(crds clientset.Interface, objects dynamic.Interface) error {
	ctx := context.Background()
	client := crds.ApiextensionsV1().CustomResourceDefinitions()
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, crd := range list.Items {
		withoutWebhook := []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
		if _, err := client.Patch(ctx, crd.Name, types.MergePatchType, withoutWebhook, metav1.PatchOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
		if err := client.Delete(ctx, crd.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		list, err := client.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) == 0 {
			return err == nil, err
		}
		for _, crd := range list.Items {
			for _, version := range crd.Spec.Versions {
				resource := objects.Resource(schema.GroupVersionResource{Group: crd.Spec.Group, Version: version.Name, Resource: crd.Spec.Names.Plural})
				// A version that is not served has no objects.
				blocked, _ := resource.List(ctx, metav1.ListOptions{})
				for i := 0; blocked != nil && i < len(blocked.Items); i++ {
					object := blocked.Items[i]
					removeFinalizers(ctx, resource.Namespace(object.GetNamespace()), object.GetName(), `null`)
				}
			}
			rest := `null`
			if apihelpers.CRDHasFinalizer(&crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
				rest = `["` + apiextensionsv1.CustomResourceCleanupFinalizer + `"]`
			}
			removeFinalizers(ctx, objects.Resource(definitions), crd.Name, rest)
		}
		return false, nil
	})
}

// removeFinalizers ignores errors, because its caller repeats it.
func removeFinalizers(ctx context.Context, resource dynamic.ResourceInterface, name, rest string) {
	patch := []byte(`{"metadata":{"finalizers":` + rest + `}}`)
	_, _ = resource.Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
}

// namespaceCreator creates the namespace of a request, because upstream's fixture disables the admission plugin
// NamespaceLifecycle.
type namespaceCreator struct {
	inner      http.RoundTripper
	namespaces dynamic.ResourceInterface
	known      sync.Map
}

var namespacedPath = regexp.MustCompile(`^/apis/[^/]+/[^/]+/namespaces/([^/]+)/`)

func (c *namespaceCreator) RoundTrip(request *http.Request) (*http.Response, error) {
	match := namespacedPath.FindStringSubmatch(request.URL.Path)
	if match != nil && request.Method != http.MethodGet {
		if _, exists := c.known.LoadOrStore(match[1], true); !exists {
			namespace := &unstructured.Unstructured{Object: map[string]interface{}{
				"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]interface{}{"name": match[1]},
			}}
			if _, err := c.namespaces.Create(request.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
				return nil, err
			}
		}
	}
	return c.inner.RoundTrip(request)
}
