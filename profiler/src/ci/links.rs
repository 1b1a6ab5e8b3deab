//! Where readers of a comparison find its pictures: a comment of a pull request cannot name files of the job.
//!
//! Sources: GitHub, "Default environment variables" of workflows; GitLab, "Predefined CI/CD variables" and "Access the
//! latest job artifacts".

use std::path::Path;

/// How a file of this job is linked to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Links {
    /// By its own path.
    Path,
    /// By this address, and the path behind it.
    Below(String),
    /// By the page that lists all artifacts.
    Page(String),
    /// In a job of GitLab: by this address, and the path from this folder on.
    Project(String, String),
}

impl Links {
    /// The links that an option asks for, or those of the job that this process is in.
    pub(super) fn new(option: Option<&str>) -> Links {
        Links::of(option, |name| std::env::var(name).ok())
    }

    fn of(option: Option<&str>, variable: impl Fn(&str) -> Option<String>) -> Links {
        if let Some(url) = option {
            return Links::Below(url.trim_end_matches('/').to_owned());
        }
        if let Some(job) = variable("CI_JOB_URL") {
            let folder = variable("CI_PROJECT_DIR").unwrap_or_default();
            return Links::Project(format!("{job}/artifacts/file"), folder);
        }
        let names = ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"];
        match names.map(variable) {
            [Some(server), Some(repository), Some(run)] => Links::Page(format!(
                "{server}/{repository}/actions/runs/{run}#artifacts"
            )),
            _ => Links::Path,
        }
    }

    /// The link to the picture in this file.
    pub(super) fn to(&self, file: &Path) -> String {
        let name = file.file_name().unwrap_or(file.as_os_str());
        match self {
            Links::Path => file.display().to_string(),
            Links::Below(url) => format!("{url}/{}", name.to_string_lossy()),
            Links::Page(url) => url.clone(),
            Links::Project(url, folder) => {
                let inside = file.strip_prefix(folder).unwrap_or(file);
                let inside = inside.strip_prefix(".").unwrap_or(inside);
                format!("{url}/{}", inside.display())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_where_the_job_keeps_its_files() {
        let gitlab = [
            ("CI_JOB_URL", "https://gitlab.example/g/p/-/jobs/7"),
            ("CI_PROJECT_DIR", "/builds/g/p"),
        ];
        let github = [
            ("GITHUB_SERVER_URL", "https://github.com"),
            ("GITHUB_REPOSITORY", "o/r"),
            ("GITHUB_RUN_ID", "42"),
        ];
        let at_gitlab = "https://gitlab.example/g/p/-/jobs/7/artifacts/file/pictures/w.svg";
        for (option, variables, file, expect) in [
            (None, &[][..], "pictures/w.svg", "pictures/w.svg"),
            (None, &gitlab[..], "pictures/w.svg", at_gitlab),
            (None, &gitlab[..], "./pictures/w.svg", at_gitlab),
            (None, &gitlab[..], "/builds/g/p/pictures/w.svg", at_gitlab),
            (
                None,
                &github[..],
                "pictures/w.svg",
                "https://github.com/o/r/actions/runs/42#artifacts",
            ),
            (
                Some("https://pages.example/7/"),
                &github[..],
                "pictures/w.svg",
                "https://pages.example/7/w.svg",
            ),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(Links::of(option, variable).to(Path::new(file)), expect);
        }
    }
}
