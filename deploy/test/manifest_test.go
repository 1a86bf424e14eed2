package test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	mpi "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/stretchr/testify/require"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/yaml"
)

// documents are those of one file, each decoded into the type that its apiVersion and kind name. A field that the type
// does not have, or that is there twice, is an error.
func documents(t *testing.T, file string) (found map[string]any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "kubernetes", file))
	require.NoError(t, err)
	found = map[string]any{}
	for _, part := range bytes.Split(text, []byte("\n---\n")) {
		var kind struct{ APIVersion, Kind string }
		require.NoError(t, yaml.Unmarshal(part, &kind))
		var into any
		switch kind.APIVersion + " " + kind.Kind {
		case "v1 Service":
			into = new(core.Service)
		case "v1 Secret":
			into = new(core.Secret)
		case "batch/v1 Job":
			into = new(batch.Job)
		case "jobset.x-k8s.io/v1alpha2 JobSet":
			into = new(jobset.JobSet)
		case "kubeflow.org/v2beta1 MPIJob":
			into = new(mpi.MPIJob)
		default:
			t.Fatalf("%s: %q %q", file, kind.APIVersion, kind.Kind)
		}
		require.NoError(t, yaml.UnmarshalStrict(part, into), file)
		found[kind.Kind] = into
	}
	return found
}

// ranks checks what an Indexed Job must have for its pods to find each other.
func ranks(t *testing.T, job *batch.JobSpec) {
	t.Helper()
	require.Equal(t, batch.IndexedCompletion, *job.CompletionMode)
	require.Equal(t, *job.Completions, *job.Parallelism, "all ranks run at the same time")
	env := map[string]core.EnvVar{}
	for _, e := range job.Template.Spec.Containers[0].Env {
		env[e.Name] = e
	}
	require.Equal(t, fmt.Sprint(*job.Completions), env["GOCCL_SIZE"].Value)
	require.NotNil(t, env["GOCCL_SECRET"].ValueFrom.SecretKeyRef, "no secret stands in a manifest of pods")
	require.Equal(t, core.RestartPolicyNever, job.Template.Spec.RestartPolicy)
	require.Empty(t, refused(&job.Template.Spec))
	require.EqualValues(t, imageUser(t), *job.Template.Spec.SecurityContext.RunAsUser)
}

func TestIndexedJob(t *testing.T) {
	d := documents(t, "indexed-job.yaml")
	job, service, secret := d["Job"].(*batch.Job), d["Service"].(*core.Service), d["Secret"].(*core.Secret)
	ranks(t, &job.Spec)
	require.Equal(t, service.Name, job.Spec.Template.Spec.Subdomain, "the pods' names are in the service's domain")
	require.Equal(t, core.ClusterIPNone, service.Spec.ClusterIP)
	require.True(t, service.Spec.PublishNotReadyAddresses)
	for k, v := range service.Spec.Selector {
		require.Equal(t, v, job.Spec.Template.Labels[k])
	}
	ref := job.Spec.Template.Spec.Containers[0].Env[1].ValueFrom.SecretKeyRef
	require.Equal(t, secret.Name, ref.Name)
	require.Contains(t, secret.StringData, ref.Key)
}

func TestJobSet(t *testing.T) {
	set := documents(t, "jobset.yaml")["JobSet"].(*jobset.JobSet)
	require.Len(t, set.Spec.ReplicatedJobs, 1)
	require.EqualValues(t, 1, set.Spec.ReplicatedJobs[0].Replicas, "JOB_COMPLETION_INDEX is the rank")
	ranks(t, &set.Spec.ReplicatedJobs[0].Template.Spec)
	require.True(t, *set.Spec.Network.EnableDNSHostnames)
	require.True(t, *set.Spec.Network.PublishNotReadyAddresses)
}

func TestMPIJob(t *testing.T) {
	job := documents(t, "mpijob.yaml")["MPIJob"].(*mpi.MPIJob)
	launcher, workers := job.Spec.MPIReplicaSpecs[mpi.MPIReplicaTypeLauncher], job.Spec.MPIReplicaSpecs[mpi.MPIReplicaTypeWorker]
	args := launcher.Template.Spec.Containers[0].Args
	require.Equal(t, []string{"-np", fmt.Sprint(*workers.Replicas * *job.Spec.SlotsPerWorker)}, args[:2])
	require.Contains(t, args, "GOCCL_ROOT="+job.Name+"-worker-0."+job.Name+":29700", "the name that the operator gives the first worker")
	require.Empty(t, refused(&launcher.Template.Spec))
	require.Empty(t, refused(&workers.Template.Spec))
}
